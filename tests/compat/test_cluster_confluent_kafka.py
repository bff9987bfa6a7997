"""Three brokers and librdkafka: brokers die and come back, and nothing acknowledged is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing import Cluster

pytestmark = pytest.mark.compat

DEADLINE_S = 60.0
OPTIONS = {
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
    "replica.lag.time.max.ms": 2000,
    "controlled.shutdown.retry.backoff.ms": 100,
    "group.initial.rebalance.delay.ms": 0,
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, options=OPTIONS) as running:
        yield running


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.05)


def create(cluster: Cluster, topic: str, partitions: int = 3) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 3)])[topic].result(DEADLINE_S)
    return admin


def leader_of(admin: AdminClient, topic: str, partition: int = 0) -> int:
    found: int = (
        admin.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions[partition].leader
    )
    return found


def all_in_sync(admin: AdminClient, topic: str) -> bool:
    partitions = admin.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions
    return all(len(each.isrs) == 3 for each in partitions.values())


class Load:
    """An idempotent producer that sends until it is told to stop, and remembers what was safe."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.acknowledged: list[tuple[int, int, bytes]] = []
        self.failed: list[KafkaError] = []
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": int(DEADLINE_S * 1000),
                "linger.ms": 1,
            }
        )
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Load:
        self._thread.start()
        wait_for(lambda: len(self.acknowledged) > 100, "the first acknowledgements")
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._ending.is_set():
            for _ in range(20):
                self._producer.produce(
                    self._topic, key=b"%d" % number, value=b"%d" % number, on_delivery=self._told
                )
                number += 1
            self._producer.poll(0.002)
        self._producer.flush(DEADLINE_S)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed.append(error)
            return
        value = message.value()
        assert isinstance(value, bytes)
        self.acknowledged.append((message.partition(), message.offset(), value))  # type: ignore[arg-type]

    def more(self, count: int = 200) -> None:
        """Wait until so many more are safe."""
        seen = len(self.acknowledged)
        wait_for(lambda: len(self.acknowledged) > seen + count, "more acknowledgements")


def read_all(cluster: Cluster, topic: str, **options: object) -> list[tuple[int, int, bytes]]:
    """Read a topic from its beginning to its present end."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "none",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            **options,
        }
    )
    numbers = consumer.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in numbers])
    found: list[tuple[int, int, bytes]] = []
    ended: set[int | None] = set()
    deadline = time.monotonic() + DEADLINE_S
    while len(ended) < len(numbers):
        assert time.monotonic() < deadline, "the end was not reached"
        message = consumer.poll(1.0)
        if message is None:
            continue
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended.add(message.partition())
            continue
        value = message.value()
        assert isinstance(value, bytes)
        found.append((message.partition(), message.offset(), value))  # type: ignore[arg-type]
    consumer.close()
    return found


def check(cluster: Cluster, load: Load, topic: str) -> None:
    """All that was acknowledged is there once, at the offset that was told, and in order."""
    assert not load.failed
    found = read_all(cluster, topic)
    assert set(load.acknowledged) <= set(found)
    values = [value for _, _, value in found]
    assert len(values) == len(set(values)), "a record is there twice"


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_the_leader_goes_and_comes_back(cluster: Cluster, how: str) -> None:
    admin = create(cluster, "t")
    with Load(cluster, "t") as load:
        for _ in range(2):
            old = leader_of(admin, "t")
            getattr(cluster, how)(old)
            load.more()
            wait_for(lambda gone=old: leader_of(admin, "t") not in (-1, gone), "another leads")  # type: ignore[misc]
            cluster.start(old)
            wait_for(lambda: all_in_sync(admin, "t"), "all replicas in sync again")
    check(cluster, load, "t")


def test_every_broker_is_restarted_in_turn(cluster: Cluster) -> None:
    """The controller among them."""
    admin = create(cluster, "t")
    with Load(cluster, "t") as load:
        for number in range(3):
            cluster.restart(number)
            wait_for(lambda: all_in_sync(admin, "t"), "all replicas in sync again")
            load.more(50)
    check(cluster, load, "t")


def committed_offsets(consumer: Consumer) -> dict[int, int]:
    """Return what a group has committed; librdkafka asks an old coordinator once and leaves it."""
    places = [TopicPartition("t", number) for number in range(3)]
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            found = consumer.committed(places, timeout=DEADLINE_S)
        except KafkaException as failure:
            if failure.args[0].code() != KafkaError.NOT_COORDINATOR or time.monotonic() > deadline:
                raise
            time.sleep(0.05)  # it looks for the coordinator meanwhile
        else:
            return {each.partition: each.offset for each in found}


def test_a_group_goes_on_when_its_coordinator_dies(cluster: Cluster) -> None:
    admin = create(cluster, "t")
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
        }
    )
    consumer.subscribe(["t"])
    seen: set[bytes] = set()

    def take(at_least: int) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while len(seen) < at_least:
            assert time.monotonic() < deadline, f"only {len(seen)} of {at_least} were read"
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                value = message.value()
                assert isinstance(value, bytes)
                seen.add(value)

    with Load(cluster, "t") as load:
        take(100)
        consumer.commit(asynchronous=False)
        committed = committed_offsets(consumer)
        for number in range(3):
            cluster.kill(number)
            load.more(100)
            take(len(seen) + 100)
            cluster.start(number)
            wait_for(lambda: all_in_sync(admin, "t"), "all replicas in sync again")
        after = committed_offsets(consumer)
    take(len(load.acknowledged))
    consumer.close()
    assert all(after[number] >= committed[number] for number in committed)
    assert {value for _, _, value in load.acknowledged} <= seen


def test_transactions_over_several_brokers(cluster: Cluster) -> None:
    """Partitions, their coordinator and the producer's leader are on different brokers."""
    admin = create(cluster, "t", partitions=6)
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": "x",
            "transaction.timeout.ms": 20000,
        }
    )
    producer.init_transactions(DEADLINE_S)
    committed: set[bytes] = set()
    for number in range(8):
        producer.begin_transaction()
        values = [b"%d-%d" % (number, partition) for partition in range(6)]
        for partition, value in enumerate(values):
            producer.produce("t", value=value, partition=partition)
        if number == 4:
            producer.flush(DEADLINE_S)
            cluster.kill(leader_of(admin, "t", 1))
        if number % 2:
            # An abort that overtakes the enlisting of its partitions is fatal to librdkafka.
            producer.flush(DEADLINE_S)
            producer.abort_transaction(DEADLINE_S)
        else:
            producer.commit_transaction(DEADLINE_S)
            committed.update(values)
    found = read_all(cluster, "t", **{"isolation.level": "read_committed"})
    assert {value for _, _, value in found} == committed


def test_topics_come_and_go_while_a_broker_is_away(cluster: Cluster) -> None:
    admin = create(cluster, "gone")
    cluster.kill(2)
    create_two = admin.create_topics([NewTopic("two", 2, 2)])["two"]
    create_two.result(DEADLINE_S)
    with pytest.raises(Exception, match=r"TIMED_OUT|timed out"):
        admin.delete_topics(["gone"], operation_timeout=0.5, request_timeout=5)["gone"].result(
            DEADLINE_S
        )
    cluster.start(2)
    wait_for(lambda: "gone" not in admin.list_topics(timeout=DEADLINE_S).topics, "the deletion")
    wait_for(lambda: _creatable(admin, "gone"), "the name is free again")
    assert "two" in admin.list_topics(timeout=DEADLINE_S).topics


def _creatable(admin: AdminClient, topic: str) -> bool:
    try:
        admin.create_topics([NewTopic(topic, 1, 3)])[topic].result(DEADLINE_S)
    except Exception:  # noqa: BLE001  librdkafka has one class for all that can be the matter
        return False
    return True
