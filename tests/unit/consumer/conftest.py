"""A broker for the tests of consumers, and topics of their own for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from tests.unit.consumer.logs import create, numbered, write

from barnabas.model.ids import TopicPartition
from barnabas.testing import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """One broker in a thread, whose groups form at once."""
    options = {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 1}
    with Cluster(options=options) as running:
        yield running


@pytest.fixture(scope="session")
def _names() -> Iterator[int]:
    return count()


@pytest.fixture
def topic(cluster: Cluster, _names: Iterator[int]) -> Callable[..., str]:
    """Make a topic: `topic(partitions=2, records=10)` puts 0, 1, … into each partition."""

    def make(partitions: int = 1, records: int = 0) -> str:
        name = f"topic-{next(_names)}"
        create(cluster.bootstrap, name, partitions)
        for partition in range(partitions if records else 0):
            write(cluster.bootstrap, TopicPartition(name, partition), numbered(records))
        return name

    return make
