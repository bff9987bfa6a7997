"""The Python twin of a compiled package is its contract: names, signatures and docstrings agree."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import barnabas
from barnabas.kernels.choice import exported

PACKAGES = ["barnabas.kernels", "barnabas.producer.accumulator"]

INSIDE = {
    "BufferPool": {"give_back", "grow", "reserve", "take"},
    "ColumnStore": {"append"},
    "PendingBatch": {"add", "failure_of", "metadata_of", "note_last", "put"},
    "PendingPartition": {"noted"},
}
"""What the Python classes call of each other, and the compiled ones in C."""


def load(package: str, twin: str) -> ModuleType:
    try:
        return importlib.import_module(f"{package}.{twin}")
    except ModuleNotFoundError as missing:
        pytest.skip(f"{missing.name} is not compiled")


def members(owner: type) -> dict[str, Any]:
    return {name: value for name, value in vars(owner).items() if not name.startswith("_")}


def callables(package: str, twin: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the functions, classes and methods of a twin, with their names."""
    for name, value in exported(load(package, twin)).items():
        yield name, value
        if isinstance(value, type):
            for inner, member in members(value).items():
                if callable(member) and inner not in INSIDE.get(name, ()):
                    yield f"{name}.{inner}", member


def parameters(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("package", PACKAGES)
def test_both_twins_offer_the_same_names(package: str) -> None:
    reference = load(package, "python")
    assert sorted(exported(reference)) == sorted(exported(load(package, "cython")))
    assert sorted(exported(reference)) == sorted(reference.__all__)
    assert set(reference.__all__) <= set(vars(importlib.import_module(package)))


@pytest.mark.parametrize("package", PACKAGES)
def test_both_twins_have_the_same_methods_and_signatures(package: str) -> None:
    reference, compiled = (dict(callables(package, twin)) for twin in ("python", "cython"))
    assert sorted(reference) == sorted(compiled)
    for name, function in reference.items():
        if not isinstance(function, type):
            assert parameters(function) == parameters(compiled[name]), name


@pytest.mark.parametrize("package", PACKAGES)
def test_constructors_take_the_same_arguments(package: str) -> None:
    """Of a compiled class its docstring has them, where it has a constructor of its own."""
    compiled = exported(load(package, "cython"))
    for name, owner in exported(load(package, "python")).items():
        embedded = re.match(rf"{name}\((.*)\)\n", compiled[name].__doc__ or "")
        if isinstance(owner, type) and embedded:
            named = re.findall(r"(\w+)(?:=[^,]*)?(?:,|$)", embedded[1].replace("()", ""))
            assert named == [parameter for parameter, _, _ in parameters(owner)], name


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("twin", ["python", "cython"])
def test_everything_that_a_twin_offers_has_a_docstring(package: str, twin: str) -> None:
    assert [name for name, value in callables(package, twin) if not value.__doc__] == []


@pytest.mark.parametrize(
    "source",
    sorted(Path(barnabas.__file__).parent.rglob("cython/*.pyx")),
    ids=lambda path: path.stem,
)
def test_each_compiled_module_has_a_twin(source: Path) -> None:
    assert (source.parent.parent / "python" / f"{source.stem}.py").exists()
