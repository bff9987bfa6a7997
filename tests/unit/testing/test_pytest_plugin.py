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


def test_another_project_gets_a_broker_with_its_options(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "def test_it(barnabas_cluster, barnabas_bootstrap):\n"
        "    assert barnabas_cluster.bootstrap == barnabas_bootstrap\n"
        "    assert barnabas_cluster._options == {'num.partitions': '2'}\n"
    )
    without = [
        word for name in ("cacheprovider", "hypothesispytest") for word in ("-p", f"no:{name}")
    ]
    command = [sys.executable, "-m", "pytest", "-q", *without, "--barnabas-option"]
    done = subprocess.run(
        [*command, "num.partitions=2", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
