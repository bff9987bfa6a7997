"""Every module of `wire` has a test file of its name, and every test file a module."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).resolve().parent
WIRE = HERE.parents[2] / "src/barnabas/wire"


def test_file_names_mirror_modules() -> None:
    modules = {path.stem for path in WIRE.glob("*.py")} - {"__init__"} | {"messages"}
    tests = {path.stem.removeprefix("test_") for path in HERE.glob("test_*.py")} - {"tidy"}
    assert tests == modules


def test_every_module_opens_with_a_docstring() -> None:
    for path in WIRE.rglob("*.py"):
        assert path.read_text().startswith('"""'), path.name
