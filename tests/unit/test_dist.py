"""What `make dist` looks at: interpreters, and what is in a wheel."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

import pytest
from tools import dist

GOOD = (
    "barnabas/__init__.py",
    "barnabas/py.typed",
    "barnabas/console/static/a.js",
    "barnabas/kernels/x.pyx",
    "barnabas/kernels/x.cpython-311-x86_64-linux-gnu.so",
    "barnabas-1.0.data/data/share/man/man1/barnabas.1",
    "pyspark_barnabas/__init__.py",
)


def wheel(directory: Path, names: tuple[str, ...], version: str = "1.0", size: int = 0) -> Path:
    path = directory / f"barnabas-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(
            f"barnabas-{version}.dist-info/METADATA", f"Name: barnabas\nVersion: {version}"
        )
        for name in names:
            made.writestr(name, bytes(size))
    return path


def test_a_wheel_as_it_should_be(tmp_path: Path) -> None:
    dist.check_wheel(wheel(tmp_path, GOOD), "1.0")


@pytest.mark.parametrize(
    ("names", "version", "size", "said"),
    [
        ((*GOOD, "tests/test_x.py"), "1.0", 0, "unexpected: {'tests'}"),
        (GOOD[:4] + GOOD[5:], "1.0", 0, r"not compiled: \['barnabas/kernels/x'\]"),
        ((*GOOD, "barnabas/kernels/x.c"), "1.0", 0, "it has C that Cython wrote"),
        (GOOD[2:], "1.0", 0, "py.typed is missing"),
        (GOOD[:5], "1.0", 0, "no manual page"),
        (GOOD, "1.1", 0, "its version is 1.1, that of the sdist 1.0"),
        (GOOD, "1.0", 1_000_000, "bytes are more than 5,000,000"),
    ],
)
def test_what_is_wrong_with_a_wheel_is_named(
    tmp_path: Path, names: tuple[str, ...], version: str, size: int, said: str
) -> None:
    with pytest.raises(dist.Failure, match=said):
        dist.check_wheel(wheel(tmp_path, names, version, size), "1.0")


def test_each_interpreter_is_found_once(tmp_path: Path) -> None:
    for name in ("python3", "python3.99", "python3-config", "python3.98"):
        (tmp_path / name).symlink_to(sys.executable)
    broken = tmp_path / "python3.97"
    broken.write_text("#!/bin/sh\nexit 127\n")
    broken.chmod(0o755)
    (tmp_path / "python3.96").touch()
    [found] = dist.pythons(sorted(tmp_path.iterdir()))
    assert found.version == tuple(sys.version_info[:3])
    assert found.path == Path(os.path.realpath(found.path))


def test_a_program_that_fails_is_named_with_what_it_said() -> None:
    with pytest.raises(dist.Failure, match=r"sys.exit\('no'\): exit code 1\nno"):
        dist.run(sys.executable, "-c", "import sys; sys.exit('no')")
