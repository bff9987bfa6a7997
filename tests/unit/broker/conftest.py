"""Fixtures: one broker for each module of tests, and a connection to it for each test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from tests.unit.broker.serving import Serving, Wire


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A broker with small limits where that makes a test quick."""
    options = {"auto.create.topics.enable": "true", "log.flush.interval.messages": 2**63 - 1}
    with Serving(tmp_path_factory.mktemp("data"), options) as running:
        yield running


@pytest.fixture
def wire(serving: Serving) -> Iterator[Wire]:
    """A connection; the test must leave no complaint of the broker behind."""
    with serving.connect() as connection:
        yield connection
    serving.expect_no_lines()


@pytest.fixture(scope="session")
def _names() -> Iterator[int]:
    return itertools.count()


@pytest.fixture
def new_name(_names: Iterator[int]) -> Callable[[], str]:
    """Make topic names that nobody else has."""
    return lambda: f"topic-{next(_names)}"


@pytest.fixture
def topic(new_name: Callable[[], str], wire: Wire) -> str:
    """The name of a new topic with one partition."""
    from tests.unit.broker.serving import create_topic

    name = new_name()
    create_topic(wire, name)
    return name
