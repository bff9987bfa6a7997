"""A topic for each test of pages about one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from tests.unit.console.site import Site


@pytest.fixture
def topic(site: Site, counter: Iterator[int]) -> str:
    """A new topic of two partitions."""
    name = f"topic-{next(counter)}"
    site.create_topic(name, 2)
    return name


@pytest.fixture(scope="session")
def counter() -> Iterator[int]:
    """Numbers for names."""
    return itertools.count()
