"""Both of Kafka's MirrorMakers, as its scripts start them, between two brokers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas import (
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)
from barnabas.testing import Cluster

pytestmark = pytest.mark.system

DEADLINE_S = 60.0
COUNT = 20


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[str, str]]:
    """The addresses of a source with records, and of an empty target."""
    with Cluster() as source, Cluster() as target:
        with KafkaAdminClient(bootstrap_servers=source.bootstrap) as admin:
            for topic in ("orders", "private"):
                admin.create_topics({topic: {"num_partitions": 2, "replication_factor": 1}})
        with KafkaProducer(bootstrap_servers=source.bootstrap) as producer:
            for number in range(COUNT):
                for topic in ("orders", "private"):
                    producer.send(topic, b"%d" % number, partition=number % 2)
        yield source.bootstrap, target.bootstrap


@contextmanager
def running(folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a tool; at the end it is stopped by SIGTERM, and must end with 0."""
    with (folder / "output").open("wb") as output:
        tool = subprocess.Popen(
            [sys.executable, "-m", "barnabas.cli", *words],
            cwd=folder,
            stdout=output,
            stderr=output,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))),
        )
    try:
        yield tool
        tool.send_signal(signal.SIGTERM)
        assert tool.wait(30) == 0, (folder / "output").read_text()
    finally:
        tool.kill()
        tool.wait()


def wait_for(condition: Callable[[], bool], tool: subprocess.Popen[bytes], folder: Path) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not condition():
        said = (folder / "output").read_text()
        assert tool.poll() is None, said
        assert time.monotonic() < deadline_s, said
        time.sleep(0.05)


def values(bootstrap: str, topic: str) -> dict[int, list[bytes]]:
    """Return what was committed to a topic, by partition."""
    found: dict[int, list[bytes]] = {0: [], 1: []}
    with KafkaConsumer(
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        partitions = [TopicPartition(topic, number) for number in found]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(each) < ends[each] for each in partitions):
            for partition, records in consumer.poll(100).items():
                found[partition.partition] += [bytes(record.value or b"") for record in records]
    return found


def topics(bootstrap: str) -> set[str]:
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        return set(admin.list_topics())


def test_the_first_one(clusters: tuple[str, str], tmp_path: Path) -> None:
    source, target = clusters
    (tmp_path / "source.properties").write_text(f"bootstrap.servers={source}\ngroup.id=first\n")
    (tmp_path / "target.properties").write_text(f"bootstrap.servers={target}\n")
    words = ("--consumer.config", "source.properties", "--producer.config", "target.properties")
    streams = ("--num.streams", "2", "--include", "ord.*")
    with running(tmp_path, "kafka-mirror-maker.sh", *words, *streams) as tool:
        wait_for(
            lambda: "orders" in topics(target) and values(target, "orders") == EXPECTED,
            tool,
            tmp_path,
        )
    assert "private" not in topics(target)


def test_the_second_one(clusters: tuple[str, str], tmp_path: Path) -> None:
    source, target = clusters
    with KafkaAdminClient(bootstrap_servers=source) as admin:
        admin.alter_group_offsets(
            "shop", {TopicPartition("orders", 0): OffsetAndMetadata(4, "", -1)}
        )
    (tmp_path / "mm2.properties").write_text(
        "clusters = A, B\n"
        f"A.bootstrap.servers = {source}\n"
        f"B.bootstrap.servers = {target}\n"
        "A->B.enabled = true\n"
        "A->B.topics = orders\n"
        "replication.factor = 1\n"
        "sync.group.offsets.enabled = true\n"
        "sync.group.offsets.interval.seconds = 1\n"
        "emit.heartbeats.enabled = false\n"
    )

    def is_copied() -> bool:
        if "A.orders" not in topics(target) or values(target, "A.orders") != EXPECTED:
            return False
        with KafkaAdminClient(bootstrap_servers=target) as admin:
            offsets = admin.list_consumer_group_offsets("shop")
        return TopicPartition("A.orders", 0) in offsets

    with running(tmp_path, "connect-mirror-maker.sh", "mm2.properties") as tool:
        wait_for(is_copied, tool, tmp_path)
    output = (tmp_path / "output").read_text()
    assert "connect-mirror-maker A->B: created topic A.orders with 2 partitions" in output
    assert "A.private" not in topics(target)


EXPECTED = {number: [b"%d" % each for each in range(number, COUNT, 2)] for number in (0, 1)}
