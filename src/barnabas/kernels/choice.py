"""Which twin of a compiled package is used: one choice for the whole process."""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType
from typing import Any


def choose(package: str) -> tuple[str, dict[str, Any]]:
    """Return "cython" and the names of `package.cython` if it is compiled, else those of `python`.

    BARNABAS_KERNELS=python or cython forces the choice; importing fails if it cannot be kept.
    """
    forced = os.environ.get("BARNABAS_KERNELS")
    if forced not in (None, "", "python", "cython"):
        raise ImportError(f"BARNABAS_KERNELS={forced}: expected python or cython")
    if forced != "python":
        try:
            return "cython", exported(import_module(f"{package}.cython"))
        except ModuleNotFoundError as missing:
            # A module that was not compiled lets the choice fall back; one that is broken does not.
            if not (missing.name or "").startswith(f"{package}.cython."):
                raise
            if forced:
                raise ImportError(
                    f"BARNABAS_KERNELS=cython, but {missing.name} is not compiled "
                    "(python setup.py build_ext --inplace)"
                ) from missing
    return "python", exported(import_module(f"{package}.python"))


def exported(package: ModuleType) -> dict[str, Any]:
    """Return the functions and classes that a twin imports: what it offers."""
    return {
        name: value
        for name, value in vars(package).items()
        if callable(value) and not name.startswith("_")
    }
