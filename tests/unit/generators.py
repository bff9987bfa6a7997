"""Generators that return something."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

Returned = TypeVar("Returned")


def returned(generator: Generator[Any, None, Returned]) -> Returned:
    """Run a generator to its end, and return what it returns."""
    while True:
        try:
            next(generator)
        except StopIteration as end:
            value: Returned = end.value
            return value
