"""Which kernels are used is decided once, and a forced choice is kept or refused."""

from __future__ import annotations

import os
import subprocess
import sys
from types import ModuleType as Kernels

PRINT_NAME = "from barnabas import kernels; print(kernels.NAME, kernels.crc32c.__module__)"


def run(code: str, forced: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "BARNABAS_KERNELS": forced}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )


def test_python_can_be_forced() -> None:
    assert run(PRINT_NAME, "python").stdout.split() == [
        "python",
        "barnabas.kernels.python.crc32c",
    ]


def test_the_accumulator_is_chosen_with_the_kernels(twins: tuple[Kernels, Kernels]) -> None:
    code = "from barnabas.producer.accumulator import Accumulator; print(Accumulator.__module__)"
    for name in ("python", "cython"):
        expected = f"barnabas.producer.accumulator.{name}.accumulator\n"
        assert run(code, name).stdout == expected


def test_a_forced_choice_that_is_not_compiled_fails_loudly() -> None:
    """A finder in front hides the compiled modules."""
    code = """
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("barnabas.kernels.cython."):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Hide())
from barnabas import kernels
print(kernels.NAME)
"""
    forced = run(code, "cython")
    assert forced.returncode != 0
    assert "BARNABAS_KERNELS=cython, but barnabas.kernels.cython.arrow is not compiled" in (
        forced.stderr
    )
    assert run(code, "").stdout == "python\n"


def test_an_unknown_choice_is_refused() -> None:
    assert "BARNABAS_KERNELS=rust: expected python or cython" in run(PRINT_NAME, "rust").stderr


def test_compiled_kernels_import_nothing_above_the_model(twins: tuple[Kernels, Kernels]) -> None:
    """The import linter does not see compiled modules."""
    code = """
import sys, barnabas.kernels
print(sorted({name.split(".")[1] for name in sys.modules if name.startswith("barnabas.")}))
"""
    assert run(code, "cython").stdout == "['kernels', 'model']\n"
