"""Both accumulators under the same tests."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest


def load(name: str) -> ModuleType:
    try:
        return importlib.import_module(f"barnabas.producer.accumulator.{name}")
    except ModuleNotFoundError as missing:
        pytest.skip(f"{missing.name} is not compiled")


@pytest.fixture(scope="session", params=["python", "cython"])
def twin(request: pytest.FixtureRequest) -> ModuleType:
    """One accumulator after the other."""
    return load(request.param)


@pytest.fixture(scope="session")
def twins() -> tuple[ModuleType, ModuleType]:
    """The reference and the compiled accumulator."""
    return load("python"), load("cython")
