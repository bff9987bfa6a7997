"""The pytest plugin: light to load, and a broker for those who ask."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.testing.pytest_plugin import options_of


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


def run_project(directory: Path, text: str, *options: str) -> str:
    """Run another project's tests, and return what pytest printed."""
    (directory / "test_it.py").write_text(text)
    without = [
        word for name in ("cacheprovider", "hypothesispytest") for word in ("-p", f"no:{name}")
    ]
    command = [sys.executable, "-m", "pytest", "-q", *without, *options, str(directory)]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_another_project_gets_a_broker_with_its_options(tmp_path: Path) -> None:
    printed = run_project(
        tmp_path,
        "def test_it(barnabas_cluster, barnabas_bootstrap):\n"
        "    assert barnabas_cluster.bootstrap == barnabas_bootstrap\n"
        "    assert barnabas_cluster._options == {'num.partitions': '2'}\n",
        "--barnabas-option",
        "num.partitions=2",
    )
    assert "1 passed" in printed, printed


def test_another_project_gets_clusters_of_any_size(tmp_path: Path) -> None:
    """One for the session, and those of its own that a test forgets to close."""
    printed = run_project(
        tmp_path,
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
    assert "2 passed" in printed, printed


def test_another_project_gets_a_secured_cluster(tmp_path: Path) -> None:
    printed = run_project(
        tmp_path,
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
    assert "2 passed" in printed, printed
