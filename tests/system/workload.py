"""What runs against a cluster while it is broken, and what must be true of it afterwards.

`Load` sends numbered records, each once, and remembers what was acknowledged. `Group` reads them in
a consumer group and commits. `Copy` moves them to another topic in transactions. Each runs in a
thread of its own until it is left; `check` then compares everything with everything.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from types import TracebackType
from typing import Self

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from tests.system.clusters import DEADLINE_S, WiredCluster, wait_for

from barnabas import KafkaConsumer, KafkaProducer
from barnabas.model.errors import BarnabasError
from barnabas.structs import OffsetAndMetadata

Record = tuple[int, int, bytes]
PER_SECOND = 500


def clients(cluster: WiredCluster) -> dict[str, str | int]:
    """Return what all clients are told; that brokers go away is no news to log."""
    return {
        "bootstrap.servers": cluster.bootstrap,
        "socket.timeout.ms": 5000,
        "reconnect.backoff.max.ms": 500,
        "log_level": 0,
        **cluster.login,
    }


class Worker:
    """Something that runs in a thread until it is told to end; its failure fails the test."""

    def __init__(self) -> None:
        self.ending = threading.Event()
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._guarded)

    def run(self) -> None:
        """Work until `ending` is set."""
        raise AssertionError("every worker has work")

    def _guarded(self) -> None:
        try:
            self.run()
        except BaseException as failure:  # noqa: BLE001  it is raised where the worker is left
            self.failure = failure

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.ending.set()
        self._thread.join()
        if self.failure is not None and kind is None:
            raise self.failure


class Load(Worker):
    """An idempotent producer with acks=all; numbers are its records."""

    def __init__(self, cluster: WiredCluster, topic: str, name: str = "") -> None:
        """Describe a load of 500 records a second; `name` tells its records from another's."""
        super().__init__()
        self._name = name.encode()
        self.acknowledged: list[Record] = []
        self.failed: list[KafkaError] = []
        self._topic = topic
        self._producer = Producer(
            {
                **clients(cluster),
                "enable.idempotence": True,
                "message.timeout.ms": int(DEADLINE_S * 1000),
                "linger.ms": 1,
                "retry.backoff.ms": 50,
                "topic.metadata.refresh.interval.ms": 5000,
            }
        )

    def run(self) -> None:
        number, began = 0, time.monotonic()
        while not self.ending.is_set():
            while number < (time.monotonic() - began) * PER_SECOND:
                value = b"%s%d" % (self._name, number)
                self._producer.produce(self._topic, value, value, on_delivery=self._told)
                number += 1
            self._producer.poll(0.005)
        assert self._producer.flush(DEADLINE_S) == 0, "some records are still on their way"

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed.append(error)
        else:
            self.acknowledged.append(_record(message))

    def more(self, count: int = 100) -> None:
        """Wait until so many more are safe."""
        seen = len(self.acknowledged)
        wait_for(
            lambda: len(self.acknowledged) > seen + count or self.failure or self.failed,
            "more acknowledgements",
        )
        assert not self.failed, self.failed[0]

    def more_or_failed(self) -> None:
        """Wait until some more are safe, or were refused since their topic is gone."""
        seen = len(self.acknowledged) + len(self.failed)
        wait_for(lambda: len(self.acknowledged) + len(self.failed) > seen + 100, "any answers")


class Group(Worker):
    """A consumer of a group, which commits what it has read, and sees that commits stay.

    With our own client: librdkafka locks itself up when an answer about a leader's epoch comes
    while the connection to another broker fails.
    """

    def __init__(self, cluster: WiredCluster, topic: str, group: str) -> None:
        super().__init__()
        self.seen: set[bytes] = set()
        self.committed: dict[int, int] = {}
        self.failures: list[BarnabasError] = []
        self._cluster = cluster
        self._topic, self._group = topic, group

    def run(self) -> None:
        consumer = KafkaConsumer(
            self._topic,
            bootstrap_servers=self._cluster.bootstrap,
            group_id=self._group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=10000,
            request_timeout_ms=11000,
            **self._cluster.login,
        )
        with consumer:
            while not self.ending.is_set():
                got = consumer.poll(timeout_ms=200, max_records=200)
                if not got:
                    continue
                self.seen.update(record.value for records in got.values() for record in records)
                ends = {
                    partition: OffsetAndMetadata(records[-1].offset + 1)
                    for partition, records in got.items()
                }
                try:
                    consumer.commit(ends)
                except BarnabasError as failure:
                    self.failures.append(failure)
                    continue  # not committed, so not counted; the next one says more
                for partition, end in ends.items():
                    known = self.committed.get(partition.partition, 0)
                    self.committed[partition.partition] = max(end.offset, known)


class Copy(Worker):
    """Reads, and writes what it read elsewhere, in transactions that hold its offsets too.

    With our own clients: librdkafka waits for ever to commit offsets at a coordinator that has left
    the cluster meanwhile.
    """

    def __init__(self, cluster: WiredCluster, source: str, target: str, name: str) -> None:
        super().__init__()
        self.transactions = 0
        self.failures: list[BarnabasError] = []
        self._cluster = cluster
        self._source, self._target, self._name = source, target, name

    def run(self) -> None:
        while not self.ending.is_set():
            try:
                with self._consumer() as consumer, self._producer() as producer:
                    producer.init_transactions()
                    while not self.ending.is_set():
                        self._turn(consumer, producer)
            except BarnabasError as failure:
                # Another life: it takes over from what is committed, and fences what was not.
                self.failures.append(failure)

    def _consumer(self) -> KafkaConsumer:
        return KafkaConsumer(
            self._source,
            bootstrap_servers=self._cluster.bootstrap,
            group_id=self._name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            session_timeout_ms=10000,
            request_timeout_ms=11000,
            **self._cluster.login,
        )

    def _producer(self) -> KafkaProducer:
        return KafkaProducer(
            bootstrap_servers=self._cluster.bootstrap,
            transactional_id=self._name,
            transaction_timeout_ms=20000,
            max_block_ms=int(DEADLINE_S * 1000),
            **self._cluster.login,
        )

    def _turn(self, consumer: KafkaConsumer, producer: KafkaProducer) -> None:
        got = consumer.poll(timeout_ms=200, max_records=200)
        if not got:
            return
        producer.begin_transaction()
        for records in got.values():
            for record in records:
                producer.send(self._target, record.value)
        positions = {
            partition: OffsetAndMetadata(records[-1].offset + 1)
            for partition, records in got.items()
        }
        producer.send_offsets_to_transaction(positions, consumer.group_metadata())
        producer.commit_transaction()
        self.transactions += 1


def read_all(cluster: WiredCluster, topic: str) -> list[Record]:
    """Read what is committed of a topic, from its beginning to its present end."""
    consumer = Consumer(
        {
            **clients(cluster),
            "group.id": "none",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    numbers = consumer.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in numbers])
    found: list[Record] = []
    ended: set[int | None] = set()
    deadline = time.monotonic() + DEADLINE_S
    try:
        while len(ended) < len(numbers):
            assert time.monotonic() < deadline, "the end was not reached"
            for message in consumer.consume(1000, 0.5):
                error = message.error()
                if error is None:
                    found.append(_record(message))
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()
    return found


def check_topic(cluster: WiredCluster, topic: str, load: Load) -> list[bytes]:
    """All that was acknowledged is there, at its offset; nothing is there twice."""
    assert not load.failed, load.failed[0]
    found = read_all(cluster, topic)
    lost = set(load.acknowledged) - set(found)
    assert not lost, f"{len(lost)} acknowledged records are lost, such as {min(lost)}"
    values = [value for _, _, value in found]
    double = [value for value, times in Counter(values).items() if times > 1]
    assert not double, f"{len(double)} records are there twice, such as {double[0]!r}"
    return values


def committed_of(cluster: WiredCluster, topic: str, group: str, partitions: int) -> dict[int, int]:
    """Return the offsets that a group has committed."""
    consumer = Consumer({**clients(cluster), "group.id": group})
    try:
        asked = [TopicPartition(topic, number) for number in range(partitions)]
        return {
            each.partition: max(each.offset, 0)
            for each in consumer.committed(asked, timeout=DEADLINE_S)
        }
    finally:
        consumer.close()


def _record(message: Message) -> Record:
    value, partition, offset = message.value(), message.partition(), message.offset()
    assert isinstance(value, bytes)
    assert partition is not None
    assert offset is not None
    return partition, offset, value
