"""Topic names of a test's own, for the files of clients.

Every client is driven through the same acts, each in its own words: administer, produce, read by
assignment. Groups and transactions have files of their own, and a broker that lets sessions be
short and does not wait for more members.
"""

from __future__ import annotations

import importlib
import itertools
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
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


class Confluent:
    """The modules of confluent-kafka's interface, from one package or the other."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.kafka: Any = importlib.import_module(root)
        self.admin: Any = importlib.import_module(f"{root}.admin")
        self.aio: Any = importlib.import_module(f"{root}.aio")
        self.error: Any = importlib.import_module(f"{root}.error")
        self.serialization: Any = importlib.import_module(f"{root}.serialization")

    @property
    def ours(self) -> bool:
        """Whether the clients are ours."""
        return self.root.startswith("barnabas.")

    def topic(self, bootstrap: str, name: str, partitions: int = 1, **options: str) -> str:
        """Create a topic, and return its name."""
        admin = self.admin.AdminClient({"bootstrap.servers": bootstrap})
        new = self.admin.NewTopic(name, partitions, 1, config=options)
        admin.create_topics([new])[name].result(30)
        return name

    def fill(self, bootstrap: str, name: str, count: int, partition: int = 0) -> None:
        """Write the values b"0", b"1", …, each with a timestamp a second after the one before."""
        producer = self.kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        start_ms = 1_700_000_000_000
        for number in range(count):
            value, key = b"%d" % number, b"key-%d" % number
            producer.produce(name, value, key, partition, timestamp=start_ms + 1000 * number)
        assert producer.flush(30) == 0

    def consumer(self, bootstrap: str, group: str, **options: Any) -> Any:
        """Return a consumer that starts at the beginning; options have _ for the dots."""
        return self.kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                **{name.replace("_", "."): value for name, value in options.items()},
            }
        )


@pytest.fixture(
    params=["confluent_kafka", "barnabas.compat.confluent_kafka"], ids=["theirs", "ours"]
)
def confluent(request: pytest.FixtureRequest) -> Confluent:
    """confluent-kafka, and ours under its interface: a test sees the same with both."""
    return Confluent(request.param)
