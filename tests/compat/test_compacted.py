"""Consumers of compacted topics, while they are compacted and afterwards: no error, no hole."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import aiokafka
import confluent_kafka
import pytest
from tests.compat.compacting import END, OPTIONS, Filling, Read
from tools.processes import RunningBroker, start_barnabas

import barnabas
import barnabas.aio

with warnings.catch_warnings():
    # It reads its schemas through functions of the standard library that are on its way out.
    warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
    import kafka

pytestmark = pytest.mark.compat

DEADLINE_S = 120
Reader = Callable[[str, str, str], list[Read]]


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningBroker]:
    """A broker that compacts all the time."""
    if request.config.getoption("--broker") == "apache":
        pytest.skip("looks into the directory of our broker")
    running = start_barnabas(tmp_path_factory.mktemp("compacted") / "data", options=OPTIONS)
    yield running
    running.stop()


def read_with_librdkafka(bootstrap: str, topic: str, isolation: str) -> list[Read]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            # Large from the start: else it doubles the size ten times before it tells of an error.
            "fetch.message.max.bytes": 1_000_000_000,
            "fetch.max.bytes": 1_000_000_000,
            "receive.message.max.bytes": 2_000_000_000,
        }
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        found: list[Read] = []
        while not found or found[-1].key != END:
            message = consumer.poll(DEADLINE_S)
            assert message is not None
            assert message.error() is None, message.error()
            found.append(Read(message.offset(), message.key(), message.value()))
        return found
    finally:
        consumer.close()


def read_blocking(library: Any) -> Reader:
    def read(bootstrap: str, topic: str, isolation: str) -> list[Read]:
        consumer = library.KafkaConsumer(
            bootstrap_servers=bootstrap,
            isolation_level=isolation,
            consumer_timeout_ms=DEADLINE_S * 1000,
        )
        try:
            partition = library.TopicPartition(topic, 0)
            consumer.assign([partition])
            consumer.seek(partition, 0)
            found: list[Read] = []
            for record in consumer:
                found.append(Read(record.offset, record.key, record.value))
                if record.key == END:
                    break
            assert found[-1].key == END
            return found
        finally:
            consumer.close()

    return read


def read_awaiting(library: Any, partition_class: Any) -> Reader:
    async def read(bootstrap: str, topic: str, isolation: str) -> list[Read]:
        consumer = library.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, isolation_level=isolation, enable_auto_commit=False
        )
        await consumer.start()
        try:
            partition = partition_class(topic, 0)
            consumer.assign([partition])
            consumer.seek(partition, 0)
            found: list[Read] = []
            async with asyncio.timeout(DEADLINE_S):
                while not found or found[-1].key != END:
                    record = await consumer.getone()
                    found.append(Read(record.offset, record.key, record.value))
            return found
        finally:
            await consumer.stop()

    return lambda *arguments: asyncio.run(read(*arguments))


READERS: dict[str, Reader] = {
    "librdkafka": read_with_librdkafka,
    "kafka-python": read_blocking(kafka),
    "aiokafka": read_awaiting(aiokafka, aiokafka.TopicPartition),
    "barnabas": read_blocking(barnabas),
    "barnabas.aio": read_awaiting(barnabas.aio, barnabas.TopicPartition),
}
ISOLATIONS = ("read_uncommitted", "read_committed")


@pytest.fixture(scope="module")
def compacted(broker: RunningBroker) -> Iterator[Filling]:
    """A topic that has been gone over, with nothing but empty batches in many segments."""
    filling = Filling(broker.bootstrap, "compacted")
    filling.put(1500)
    filling.transact(40)
    filling.end()
    filling.wait_until_compacted(broker.log_dir)
    yield filling
    filling.close()


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("name", READERS)
def test_a_compacted_topic_is_read_from_its_beginning(
    compacted: Filling, broker: RunningBroker, name: str, isolation: str
) -> None:
    found = READERS[name](broker.bootstrap, compacted.topic, isolation)
    compacted.check(found, committed=isolation == "read_committed")
    assert len(found) < 400, "the other records went"


def test_a_topic_is_read_while_it_is_compacted(broker: RunningBroker) -> None:
    """By all of them at once, from the first record on, and again from the beginning later on."""
    filling = Filling(broker.bootstrap, "busy")
    with ThreadPoolExecutor(4 * len(READERS)) as threads:
        reading = []

        def begin() -> None:
            for isolation in ISOLATIONS:
                for read in READERS.values():
                    task = threads.submit(read, broker.bootstrap, filling.topic, isolation)
                    reading.append((task, isolation == "read_committed"))

        begin()
        for _ in range(4):
            filling.put(300)
            filling.transact(10)
        begin()
        filling.put(300)
        filling.transact(10)
        filling.end()
        for task, committed in reading:
            filling.check(task.result(DEADLINE_S), committed=committed)
    filling.close()
