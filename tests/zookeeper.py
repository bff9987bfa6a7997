"""A real ZooKeeper for tests of several folders: where its jars are, one server per worker."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from tools.apache_kafka import Distribution, Unavailable

from barnabas.testing.zookeeper import ZooKeeperServer, find_classpath


@pytest.fixture(scope="session")
def zookeeper_classpath() -> str:
    """Where the server's jars are; skips where there are none."""
    pytest.importorskip("kazoo", reason="pip install 'barnabas[zookeeper]'")
    try:
        found = find_classpath(Distribution.fetch("3.9").jars)
    except Unavailable:
        found = find_classpath()
    if found is None:
        pytest.skip("no ZooKeeper server: `make deps` fetches one with Apache Kafka 3.9")
    return found


@pytest.fixture(scope="session")
def zookeeper(zookeeper_classpath: str) -> Iterator[ZooKeeperServer]:
    """One server for all tests of this worker; each test has a chroot of its own."""
    with ZooKeeperServer(zookeeper_classpath) as server:
        yield server


@pytest.fixture(scope="session")
def chroots() -> Iterator[str]:
    return (f"/test/{number}" for number in count())
