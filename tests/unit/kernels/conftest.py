"""Both sets of kernels under the same tests."""

from __future__ import annotations

import importlib
from types import ModuleType as Kernels

import pytest


def load(name: str) -> Kernels:
    try:
        return importlib.import_module(f"barnabas.kernels.{name}")
    except ModuleNotFoundError as missing:
        pytest.skip(f"{missing.name} is not compiled")


@pytest.fixture(scope="session", params=["python", "cython"])
def kernels(request: pytest.FixtureRequest) -> Kernels:
    """One set of kernels after the other."""
    return load(request.param)


@pytest.fixture(scope="session")
def twins() -> tuple[Kernels, Kernels]:
    """The reference and the compiled kernels."""
    return load("python"), load("cython")
