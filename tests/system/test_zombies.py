"""Brokers that were deposed and do not hear of it: three processes, each in a network of its own.

One broker leads a partition and coordinates a group, and is cut off: its ZooKeeper, everybody, one
way or both; clients still reach it. Another takes over. From a second after that on no client gets
an answer of the old one, and the group's offset never goes back. When ZooKeeper is away for all,
nobody can take over, and nobody falls silent.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("kazoo", reason="pip install 'barnabas[zookeeper]'")

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from tests.system.clusters import wait_for
from tests.system.namespaces import skip_unless_possible
from tests.system.severed import (
    BROKERS,
    GROUP,
    SESSION_MS,
    TOPIC,
    ZOOKEEPER,
    Asker,
    SeveredCluster,
    host,
)

from barnabas import KafkaConsumer, OffsetAndMetadata
from barnabas import TopicPartition as Place
from barnabas.replication.standing import TRUST_MS

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("zombies")]

BOUND_S = TRUST_MS / 1000
PARTITIONS = 3


@pytest.fixture
def cluster(zookeeper_classpath: str, tmp_path: Path) -> Iterator[SeveredCluster]:
    skip_unless_possible()
    with SeveredCluster(zookeeper_classpath, tmp_path) as running:
        yield running


class Load:
    """A producer and a group of one member, at work; what they were promised is noted."""

    def __init__(self, cluster: SeveredCluster, partition: int) -> None:
        self.partition = partition
        self.acknowledged_s: list[float] = []
        self.committed: list[tuple[float, int]] = []
        self.failures: list[str] = []
        self._cluster = cluster
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._produce, self._consume)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _produce(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._cluster.bootstrap(),
                "acks": "all",
                "linger.ms": 0,
                "topic.metadata.refresh.interval.ms": 1000,
                "log_level": 0,
            }
        )

        def delivered(error: KafkaError | None, _: object) -> None:
            if error is None:
                self.acknowledged_s.append(time.monotonic())
            else:
                self.failures.append(str(error))

        while not self._stop.wait(0.02):
            producer.produce(TOPIC, b"x", partition=self.partition, on_delivery=delivered)
            producer.poll(0)
        producer.flush(60)

    def _consume(self) -> None:
        # One commit at a time: librdkafka may send a refused one again behind those that followed.
        first = Place(TOPIC, self.partition)
        expected = 0
        with KafkaConsumer(
            bootstrap_servers=self._cluster.bootstrap(),
            group_id=GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            metadata_max_age_ms=1000,
        ) as consumer:
            consumer.assign([first])
            while not self._stop.is_set():
                for record in consumer.poll(timeout_ms=100).get(first, ()):
                    if record.offset < expected:
                        self.failures.append(f"offset {record.offset} after {expected}: a reset")
                    expected = record.offset + 1
                    consumer.commit({first: OffsetAndMetadata(expected, "", -1)})
                    self.committed.append((time.monotonic(), expected))


def coordinator(cluster: SeveredCluster) -> int:
    """Return who coordinates the group: who leads the one partition of its topic."""
    found: dict[int, int] = {}

    def is_there() -> bool:
        found.update(cluster.leaders(BROKERS[0], "__consumer_offsets"))
        return bool(found)

    consumer = Consumer({"bootstrap.servers": cluster.bootstrap(), "group.id": GROUP})
    wait_for(lambda: _committed(consumer), "a coordinator")
    consumer.close()
    wait_for(is_there, "the group's topic has a leader")
    return found[0]


def _committed(consumer: Consumer) -> bool:
    try:
        consumer.committed([TopicPartition(TOPIC, 0)], timeout=5)
    except KafkaException:
        return False
    return True


@pytest.mark.parametrize(
    ("directions", "only"),
    [
        pytest.param(("out",), None, id="nothing-it-sends-arrives"),
        pytest.param(("in",), None, id="nothing-arrives-there"),
        pytest.param(("in", "out"), ZOOKEEPER, id="cut-from-zookeeper-alone"),
        pytest.param(("out",), ZOOKEEPER, id="nothing-it-sends-arrives-at-zookeeper"),
        pytest.param(("in",), ZOOKEEPER, id="nothing-of-zookeeper-arrives"),
    ],
)
def test_a_deposed_broker_falls_silent(
    cluster: SeveredCluster, directions: tuple[str, ...], only: str | None
) -> None:
    cluster.create(TOPIC, PARTITIONS)
    zombie = coordinator(cluster)
    cluster.wait_in_sync("__consumer_offsets")
    partition = next(n for n, leader in cluster.leaders(zombie, TOPIC).items() if leader == zombie)
    healthy = next(number for number in BROKERS if number != zombie)
    with Load(cluster, partition) as load, Asker(cluster.address(zombie), partition) as asker:
        wait_for(lambda: len(load.committed) > 20, "records are read and offsets committed")
        wait_for(lambda: len(asker.answers(0)) > 20, "the broker answers")
        cluster.sever(zombie, *directions, only=only)
        severed_s = time.monotonic()
        for topic, number in ((TOPIC, partition), ("__consumer_offsets", 0)):
            wait_for(
                lambda topic=topic, number=number: (  # type: ignore[misc]
                    cluster.leaders(healthy, topic).get(number, zombie) != zombie
                ),
                f"another leads {topic}-{number}",
            )
        elected_s = time.monotonic()
        assert elected_s - severed_s > SESSION_MS / 1000 * 0.75, "when its session had ended"
        wait_for(lambda: load.acknowledged_s[-1] > elected_s, "the successor acknowledges")
        acknowledged_s = next(at for at in load.acknowledged_s if at > elected_s)
        wait_for(lambda: load.committed[-1][0] > elected_s, "the successor commits")
        confirmed_s = max(acknowledged_s, next(at for at, _ in load.committed if at > elected_s))
        wait_for(
            lambda: sum(each.asked_s > confirmed_s + BOUND_S for each in asker.told) > 50,
            "the old one is asked, and has nothing to say",
        )
        until_s = time.monotonic()
        cluster.land.heal()
        stale = asker.answers(confirmed_s + BOUND_S, until_s)
        assert stale == []
        refused = [each for each in asker.told if confirmed_s < each.asked_s < until_s]
        assert len(refused) > 20, "it was asked, and refused"
        cluster.wait_in_sync(TOPIC)
        cluster.wait_in_sync("__consumer_offsets")
    assert f"broker {zombie} stops serving its partitions" in cluster.log(zombie)
    assert f"broker {zombie} serves its partitions again" in cluster.log(zombie)
    assert load.failures == []
    offsets = [offset for _, offset in load.committed]
    assert offsets == sorted(offsets)
    for told in asker.told:  # what anybody was told of the group is not older than the bound
        if told.kind == "committed" and told.code == 0:
            known = [o for at, o in load.committed if at < told.asked_s - BOUND_S]
            assert told.offset >= max(known, default=-1), told


def test_nobody_falls_silent_when_zookeeper_is_away(cluster: SeveredCluster) -> None:
    cluster.create(TOPIC, PARTITIONS)
    leader = coordinator(cluster)
    cluster.wait_in_sync("__consumer_offsets")
    partition = next(n for n, each in cluster.leaders(leader, TOPIC).items() if each == leader)
    with Load(cluster, partition) as load, Asker(cluster.address(leader), partition) as asker:
        wait_for(lambda: len(load.committed) > 20, "records are read and offsets committed")
        cluster.zookeeper.kill()
        began_s = time.monotonic()
        wait_for(lambda: time.monotonic() - began_s > 3 * SESSION_MS / 1000, "three sessions' time")
        logs = {number: cluster.log(number) for number in BROKERS}
        cluster.zookeeper.start()
        back_s = time.monotonic()
        wait_for(lambda: load.acknowledged_s[-1] > back_s + SESSION_MS / 1000, "all goes on")
    times = [at for at in load.acknowledged_s if began_s - 1 < at < back_s]
    gaps = [after - before for before, after in pairwise(times)]
    assert max(gaps) < 2.0, "acknowledgements went on"
    assert load.failures == []
    refused = [
        each for each in asker.told if began_s < each.asked_s < back_s and each.code not in (0, 1)
    ]
    assert refused == []
    for number in BROKERS:
        assert "stops serving its partitions" not in logs[number], f"{host(number)}"
