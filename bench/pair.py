"""The two brokers of a benchmark: ours and Apache Kafka, started, warmed and stopped alike.

Both run with their own defaults on a directory of their own. Where Apache Kafka cannot be had the
pair is ours alone, and `missing` says why. With `against` the peer is our broker from another
checkout, such as the tree before a change.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.load import Load
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from tools.apache_kafka import Distribution, Unavailable
from tools.processes import RunningBroker, free_port, start_barnabas

Starter = Callable[..., RunningBroker]


def starters(
    only: str | None, against: Path | None = None
) -> tuple[dict[str, Starter], str | None]:
    """Return how to start each broker by name, and why Apache Kafka is not among them."""
    found: dict[str, Starter] = {"barnabas": start_barnabas}
    missing = None
    if against is not None:
        found["against"] = partial(start_barnabas, checkout=against.resolve())
        return found, None
    try:
        found["apache"] = Distribution.fetch("3.9").start
    except Unavailable as why:
        missing = f"Apache Kafka was not measured: {why}"
    if only is not None:
        found = {only: found[only]}
    return found, missing


@dataclass
class Pair:
    """Running brokers to be measured beside each other."""

    brokers: list[RunningBroker]
    load: Load
    missing: str | None = None
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @classmethod
    @contextmanager
    def start(
        cls, *, only: str | None = None, load: Load | None = None, against: Path | None = None
    ) -> Iterator[Pair]:
        """Start the brokers, and stop them and remove their data at the end."""
        found, missing = starters(only, against)
        directory = Path(tempfile.mkdtemp(prefix="barnabas-bench-"))
        pair = cls([], load or Load.build(), missing)
        try:
            for name, start in found.items():
                pair.brokers.append(start(directory / name, port=free_port()))
            yield pair
        finally:
            for broker in pair.brokers:
                broker.stop()
            shutil.rmtree(directory)

    def new_topic(self, broker: RunningBroker, partitions: int = 1) -> str:
        """Create a topic under a name that was not used before."""
        topic = f"bench-{next(self.numbers)}"
        create_topic(broker, topic, partitions)
        return topic

    def delete(self, broker: RunningBroker, topic: str) -> None:
        delete_topic(broker, topic)


def create_topic(broker: RunningBroker, topic: str, partitions: int = 1) -> None:
    """Create a topic and wait until every partition of it has a leader."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(60)
    while True:
        found = admin.list_topics(topic, timeout=60).topics[topic].partitions
        if len(found) == partitions and all(p.leader >= 0 for p in found.values()):
            return


def delete_topic(broker: RunningBroker, topic: str) -> None:
    """Delete a topic."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result(60)
