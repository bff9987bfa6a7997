"""The pytest plugin: light to load, and a broker for those who ask."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from barnabas.testing.pytest_plugin import options_of

pytest_plugins = ["pytester"]

Run = Callable[..., pytest.RunResult]


def test_options_are_read_as_names_and_values() -> None:
    assert options_of(["a=1", "b=", "c=d=e"]) == {"a": "1", "b": "", "c": "d=e"}
    for text in ("nonsense", "=1"):
        with pytest.raises(pytest.UsageError, match=f"'{text}' is not of the form NAME=VALUE"):
            options_of([text])


def test_importing_the_plugin_imports_no_broker() -> None:
    code = (
        "import pytest, sys; before = set(sys.modules)\n"
        "import barnabas.testing.pytest_plugin\n"
        "print(*sorted(name for name in set(sys.modules) - before if 'barnabas' not in name))\n"
        "print(*sorted(name for name in sys.modules if 'barnabas' in name))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    others, ours = done.stdout.split("\n")[:2]
    assert others == ""
    assert set(ours.split()) == {
        "barnabas",
        "barnabas.model",
        "barnabas.model.error_codes",
        "barnabas.model.errors",
        "barnabas.testing",
        "barnabas.testing.cluster",
        "barnabas.testing.pytest_plugin",
    }


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """Run another project's tests, by pytest in a process of its own."""

    def run_tests(text: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(test_it=text)
        return pytester.runpytest_subprocess("-q", "-p", "no:hypothesispytest", *options)

    return run_tests


def test_another_project_gets_a_broker_with_its_options(run: Run) -> None:
    ran = run(
        "def test_it(barnabas_cluster, barnabas_bootstrap):\n"
        "    assert barnabas_cluster.bootstrap == barnabas_bootstrap\n"
        "    assert barnabas_cluster._options == {'num.partitions': '2'}\n",
        "--barnabas-option",
        "num.partitions=2",
    )
    ran.assert_outcomes(passed=1)


def test_another_project_gets_clusters_of_any_size(run: Run) -> None:
    """One for the session, and those of its own that a test forgets to close."""
    ran = run(
        "left = []\n"
        "def test_it(barnabas_cluster, barnabas_clusters):\n"
        "    assert len(barnabas_cluster.bootstrap.split(',')) == 2\n"
        "    own = barnabas_clusters(3, racks=('a', 'b', 'c'), options={'a.b': 1}).start()\n"
        "    assert own._options == {'num.partitions': '2', 'a.b': '1'}\n"
        "    assert len(own.bootstrap.split(',')) == 3\n"
        "    own.kill(1)\n"
        "    left.append(own.data_dir)\n"
        "def test_that_it_was_closed():\n"
        "    assert not left[0].exists()\n",
        "--barnabas-option",
        "num.partitions=2",
        "--barnabas-brokers=2",
    )
    ran.assert_outcomes(passed=2)


def test_another_project_gets_a_secured_cluster(run: Run) -> None:
    ran = run(
        "from barnabas import KafkaAdminClient\n"
        "def test_it(barnabas_cluster, barnabas_client_options):\n"
        "    assert barnabas_client_options == barnabas_cluster.client_options('admin')\n"
        "    assert barnabas_client_options['security.protocol'] == 'SASL_SSL'\n"
        "    with KafkaAdminClient(**barnabas_client_options) as admin:\n"
        "        assert admin.list_topics() == []\n"
        "def test_its_own(barnabas_clusters):\n"
        "    with barnabas_clusters(security='ssl') as cluster:\n"
        "        assert 'ssl.keystore.location' in cluster.client_options()\n",
        "--barnabas-security",
        "sasl_ssl",
    )
    ran.assert_outcomes(passed=2)


def test_a_cluster_lives_as_long_as_its_scope(run: Run) -> None:
    ran = run(
        "import pytest\n"
        "seen = []\n"
        "class TestOne:\n"
        "    def test_a(self, barnabas_bootstrap):\n"
        "        seen.append(barnabas_bootstrap)\n"
        "    def test_b(self, barnabas_cluster):\n"
        "        assert seen == [barnabas_cluster.bootstrap]\n"
        "class TestOther:\n"
        "    def test_c(self, barnabas_bootstrap, barnabas_own_cluster):\n"
        "        assert barnabas_bootstrap not in seen\n"
        "        assert barnabas_own_cluster.bootstrap != barnabas_bootstrap\n",
        "--barnabas-scope",
        "class",
    )
    ran.assert_outcomes(passed=3)


SENDING = """
import pytest
from barnabas import KafkaConsumer, KafkaProducer

def send(cluster, count):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all", linger_ms=0) as producer:
        for number in range(count):
            producer.send("sent", b"%d" % number).get(60)

def values(cluster, count):
    options = {"bootstrap_servers": cluster.bootstrap, "auto_offset_reset": "earliest"}
    with KafkaConsumer("sent", **options) as consumer:
        return [next(consumer).value for _ in range(count)]
"""


def test_faults_happen_as_the_marks_say(run: Run) -> None:
    ran = run(
        SENDING
        + """
SAFE = {"default.replication.factor": 2, "min.insync.replicas": 1}

@pytest.mark.barnabas(options=SAFE)
@pytest.mark.barnabas_kill(1, after_records=20)
def test_a_killed_broker(barnabas_own_cluster):
    send(barnabas_own_cluster, 20)  # the last is answered after the fault
    assert barnabas_own_cluster.running == [0]
    send(barnabas_own_cluster, 20)
    assert values(barnabas_own_cluster, 40) == [b"%d" % number for number in range(20)] * 2

@pytest.mark.barnabas_slow(1)
@pytest.mark.barnabas_stop(0, after_records=3, for_s=0.1)
@pytest.mark.barnabas_isolate(0, after_records=5, for_s=0.1)
def test_it_goes_on_when_they_end(barnabas_own_cluster):
    send(barnabas_own_cluster, 10)
    assert values(barnabas_own_cluster, 10) == [b"%d" % number for number in range(10)]

@pytest.mark.barnabas_kill(0, after_records=100)
def test_it_did_not_happen(barnabas_own_cluster):
    send(barnabas_own_cluster, 2)
"""
    )
    ran.assert_outcomes(passed=3, errors=1)
    ran.stdout.fnmatch_lines(["kill(0) did not happen: clients sent 2 records, it waits for 100"])


def test_marks_without_the_fixture_are_rejected(run: Run) -> None:
    ran = run("import pytest\n@pytest.mark.barnabas_kill(1)\ndef test_it(): ...\n")
    ran.stderr.fnmatch_lines(
        ["*test_it.py::test_it: the mark barnabas_kill needs the fixture barnabas_own_cluster"]
    )


def test_wrong_marks_are_rejected(run: Run) -> None:
    marks = ("burn(1)", "kill(1, after=3)", "kill(0, for_s=-1)", "slow()", "kill(-1)")
    tests = "".join(
        f"@pytest.mark.barnabas_{mark}\ndef test_{number}(barnabas_own_cluster): ...\n"
        for number, mark in enumerate(marks)
    )
    few = (
        "@pytest.mark.barnabas(1)\n@pytest.mark.barnabas_partition(0, 2)\n"
        "def test_few(barnabas_own_cluster): ...\n"
    )
    ran = run(f"import pytest\n{tests}{few}")
    ran.assert_outcomes(errors=len(marks) + 1)
    ran.stdout.fnmatch_lines(
        [
            "*mark barnabas_burn: must be one of barnabas_kill, barnabas_stop, *",
            "*mark barnabas_kill: * unexpected keyword argument 'after'*",
            "*mark barnabas_kill: kill(0): for_s=-1: must be at least 0",
            "*mark barnabas_slow: * missing 1 required positional argument: 'latency_ms'",
            "*mark barnabas_kill: kill(-1): brokers are counted from 0",
            "*brokers=1: must be at least 3, because a fault names broker 2",
        ]
    )


def test_the_report_of_a_failed_test_shows_what_was_sent(run: Run) -> None:
    ran = run(
        SENDING
        + """
def test_before(barnabas_cluster):
    with KafkaProducer(bootstrap_servers=barnabas_cluster.bootstrap) as producer:
        producer.send("older", b"of another test").get(60)

def test_fails(barnabas_cluster):
    send(barnabas_cluster, 5)
    raise AssertionError
""",
        "--barnabas-records=2",
    )
    ran.assert_outcomes(passed=1, failed=1)
    ran.stdout.fnmatch_lines(
        [
            "*- Barnabas at 127.0.0.1:* -*",
            "topic sent: 5 offsets (partition: first–next; 0: 0–5)",
            "  0:3 * null → 3",
            "  0:4 * null → 4",
        ]
    )
    ran.stdout.no_fnmatch_line("*topic older*")
