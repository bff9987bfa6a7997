# Everything a newcomer types. Each target sets up what it needs, in .venv/ and .deps/ of this checkout.
.DEFAULT_GOAL := help
.PHONY: help install deps run test lint format unit bench bench-check chaos interop docs pictures site lock dist clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One more than there are cores: many tests wait for other processes most of their time.
PYTEST_WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))

# cython-lint calls pycodestyle by its name.
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Without bytecode every start of a command compiles the whole package anew.
unexport PYTHONDONTWRITEBYTECODE

help:  ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

install: $(STAMP)  ## make .venv/ with the package, its compiled kernels and all that the suite needs

$(STAMP): requirements.lock pyproject.toml setup.py $(shell find src -name '*.pyx' -o -name '*.pxd')
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Barnabas needs Python 3.11 or later; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python tools/install.py
	@touch $(STAMP)

deps: $(STAMP)  ## system packages and other clients that tests and benchmarks use
	@sh tools/deps.sh

run: $(STAMP)  ## a broker on 127.0.0.1:9092 and the demo pipeline on Spark (RUN=broker: the broker alone)
ifeq ($(RUN),broker)
	$(BIN)/barnabas start --data-dir data --console
else
	@sh tools/java.sh
	$(BIN)/barnabas demo --data-dir data
endif

test: $(STAMP) deps lint  ## the whole suite, lint included (Apache Kafka beside ours: make interop)
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadgroup --ignore tests/interop

unit: $(STAMP)  ## only the quick tests
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadgroup tests/unit tests/network tests/golden tests/simulation

lint: $(STAMP)  ## ruff, mypy --strict, import-linter, stale generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/cython-lint --max-line-length 100 src
	$(BIN)/python tools/check_generated.py

format: $(STAMP)  ## format the tree
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) deps  ## ours beside Apache Kafka and the other clients, ratios and CPU seconds
	$(BIN)/python -m bench.broker
	$(BIN)/python -m bench.storage
	$(BIN)/python -m bench.groups
	$(BIN)/python -m bench.transactions
	$(BIN)/python -m bench.clients
	$(BIN)/python -m bench.replication
	$(BIN)/python -m bench.security
	$(BIN)/python -m bench.spark
	$(BIN)/python -m bench.metrics
	$(BIN)/python -m bench.console
	$(BIN)/python -m bench.starts

bench-check: $(STAMP) deps  ## whether a request has become dearer, in instructions (needs no quiet machine)
	$(BIN)/python -m bench.instructions --check

interop: $(STAMP) deps  ## Apache Kafka's own tools, from Maven, against our broker
	$(BIN)/python -m tools.frameworks
	$(BIN)/python -m pytest -m interop tests/interop

chaos: PYTEST := $(BIN)/python -m pytest --timeout 7200
chaos: $(STAMP) deps  ## long seeded runs with crashes
	BARNABAS_CHAOS_SEEDS=$${BARNABAS_CHAOS_SEEDS:-2000} $(PYTEST) tests/simulation \
	  -n $(PYTEST_WORKERS) --maxschedchunk 1
	$(PYTEST) tests/unit -m hypothesis --hypothesis-profile=explore -n $(PYTEST_WORKERS)
	BARNABAS_COMPACTION_HISTORIES=$${BARNABAS_COMPACTION_HISTORIES:-3000} \
	  $(PYTEST) tests/unit/log/compaction/test_steps.py -k histories
	BARNABAS_CHAOS_SECONDS=$${BARNABAS_CHAOS_SECONDS:-60} \
	  $(PYTEST) tests/compat/test_transactions_killed_producers.py
	BARNABAS_CHAOS_SECONDS=$${BARNABAS_CHAOS_SECONDS:-300} \
	  $(PYTEST) tests/system/test_cluster_chaos.py -n0 -s
	BARNABAS_CHAOS_SECONDS=$${BARNABAS_CHAOS_SECONDS:-60} \
	  $(PYTEST) tests/system/test_secured_cluster.py tests/system/test_many_logins.py -n0 -s
	BARNABAS_QUOTA_SECONDS=$${BARNABAS_QUOTA_SECONDS:-30} $(PYTEST) tests/compat/test_quotas.py -n0 -s
	BARNABAS_INTERRUPTIONS=$${BARNABAS_INTERRUPTIONS:-100} \
	  $(PYTEST) tests/system/test_interruptions.py -n $(PYTEST_WORKERS) --dist loadgroup
	BARNABAS_CONSOLE_RECORDS=$${BARNABAS_CONSOLE_RECORDS:-10000000} \
	  $(PYTEST) tests/system/console -n0
	BARNABAS_CHAOS_KILLS=$${BARNABAS_CHAOS_KILLS:-24} \
	  $(PYTEST) tests/system/test_spark_killed.py tests/system/test_spark_sink_killed.py -n0 -s

docs: $(STAMP)  ## write the generated pages and files anew
	$(BIN)/python tools/check_generated.py --write

pictures: $(STAMP) deps  ## take the pictures of the console for the docs anew
	$(BIN)/python -m tools.pictures

site: $(STAMP)  ## the pages as a site in build/site, with search (open index.html)
	test -x .deps/site/bin/python || $(BIN)/uv venv --quiet .deps/site
	VIRTUAL_ENV=.deps/site $(BIN)/uv pip install --quiet --group docs
	NO_MKDOCS_2_WARNING=1 .deps/site/bin/python -m tools.build_site

lock: $(STAMP)  ## resolve the dependencies anew
	$(BIN)/uv pip compile --quiet pyproject.toml --extra all --group dev --universal -o requirements.lock

dist: $(STAMP)  ## build sdist and wheels in dist/, and try them on every Python of this machine
	$(BIN)/python -m tools.dist

clean:  ## remove what was built
	rm -rf build dist src/*.egg-info $(VENV)
	find src -name '*.so' -delete -o -name '*.c' -delete
