"""Topic names of a test's own, for the files of clients.

Every client is driven through the same acts, each in its own words: administer, produce, read by
assignment. Groups and transactions have files of their own, and a broker that lets sessions be
short and does not wait for more members.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator

import pytest
from tests.compat.confluent import Confluent
from tests.zookeeper import zookeeper, zookeeper_classpath  # noqa: F401
from tools.apache_kafka import Distribution, Unavailable
from tools.processes import start_barnabas

NewTopicName = Callable[[], str]


@pytest.fixture
def new_name(request: pytest.FixtureRequest) -> NewTopicName:
    """A maker of topic names that no other test uses (each worker has a broker of its own)."""
    count = itertools.count()
    module = request.module.__name__.rpartition(".")[2].removeprefix("test_")
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    function = re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.name.removeprefix("test_"))
    return lambda: f"{module}.{function}.{worker}.{next(count)}"[-200:]


@pytest.fixture
def name(new_name: NewTopicName) -> str:
    """One topic name of the test's own."""
    return new_name()


QUICK = {
    "group.min.session.timeout.ms": "100",
    "group.initial.rebalance.delay.ms": "100",
    "group.coordinator.rebalance.protocols": "classic,consumer",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


@pytest.fixture(scope="session")
def quick_bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of a broker on which members may have short sessions."""
    data_dir = tmp_path_factory.mktemp("quick") / "data"
    if request.config.getoption("--broker") == "apache":
        try:
            running = Distribution.fetch("3.9").start(data_dir, options=QUICK)
        except Unavailable as why:
            pytest.skip(str(why))
    else:
        running = start_barnabas(data_dir, options=QUICK)
    yield running.bootstrap
    running.stop()


@pytest.fixture(
    params=["confluent_kafka", "barnabas.compat.confluent_kafka"], ids=["theirs", "ours"]
)
def confluent(request: pytest.FixtureRequest) -> Confluent:
    """confluent-kafka, and ours under its interface: a test sees the same with both."""
    return Confluent(request.param)
