"""AIOKafkaProducer against a real broker: aiokafka's calls, on the caller's own loop."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place

from barnabas.aio.admin import AIOKafkaAdminClient
from barnabas.aio.consumer import AIOKafkaConsumer
from barnabas.aio.producer import AIOKafkaProducer
from barnabas.errors import (
    IllegalOperation,
    IllegalStateError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NoBrokersAvailable,
    ProducerClosed,
    TransactionAbortedError,
)
from barnabas.producer.accumulator import Refusal
from barnabas.structs import RecordMetadata, TopicPartition
from barnabas.testing import Cluster

Scenario = Callable[[str, str], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(options={"num.partitions": 2}) as running:
        yield running


@pytest.fixture
def topic() -> str:
    return f"t-{uuid.uuid4().hex[:8]}"


def run(cluster: Cluster, topic: str, scenario: Scenario) -> None:
    asyncio.run(asyncio.wait_for(scenario(cluster.bootstrap, topic), 60))


def read(cluster: Cluster, topic: str, count: int, **options: Any) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "r", **options})
    partitions = consumer.list_topics(topic, 10).topics[topic].partitions
    consumer.assign([Place(topic, number, 0) for number in partitions])
    found: list[Any] = []
    deadline = time.monotonic() + 60
    while len(found) < count and time.monotonic() < deadline:
        found += [record.value() for record in consumer.consume(count - len(found), 0.2)]
    consumer.close()
    return found


def test_sending_and_waiting(cluster: Cluster, topic: str) -> None:
    async def scenario(bootstrap: str, topic: str) -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            metadata = await producer.send_and_wait(topic, b"v", b"k", 1, 77, [("h", b"1")])
            assert isinstance(metadata, RecordMetadata)
            assert metadata[:5] == (topic, 1, TopicPartition(topic, 1), 0, 77)
            futures = [await producer.send(topic, b"v", partition=1) for _ in range(100)]
            assert all(isinstance(future, asyncio.Future) for future in futures)
            offsets = [metadata.offset for metadata in await asyncio.gather(*futures)]
            assert offsets == list(range(1, 101))
            assert await producer.partitions_for(topic) == {0, 1}
            assert producer.metrics()["producer-metrics"]["record-send-total"] == 101

    run(cluster, topic, scenario)


def test_flush_and_stop_deliver(cluster: Cluster, topic: str) -> None:
    async def scenario(bootstrap: str, topic: str) -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=10_000)
        await producer.start()
        first = await producer.send(topic, b"1")
        await producer.flush()
        assert first.done()
        second = await producer.send(topic, b"2")
        await producer.stop()
        assert second.done()
        await producer.stop()
        with pytest.raises(ProducerClosed):
            await producer.send(topic, b"3")

    run(cluster, topic, scenario)
    assert sorted(read(cluster, topic, 2)) == [b"1", b"2"]


def test_a_batch_filled_by_hand(cluster: Cluster, topic: str) -> None:
    async def scenario(bootstrap: str, topic: str) -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            max_batch_size=300,
            value_serializer=str.encode,
        ) as producer:
            batch = producer.create_batch()
            count = 0
            while batch.append(timestamp=None, key=None, value="x" * 40) is not None:
                count += 1
            assert batch.closed()
            assert batch.record_count() == count == 5
            assert batch.size() <= 300
            metadata = await (await producer.send_batch(batch, topic, partition=1))
            assert (metadata.partition, metadata.offset) == (1, 0)
            with pytest.raises(ValueError, match="an empty batch"):
                await producer.send_batch(producer.create_batch(), topic, partition=0)
            with pytest.raises(ValueError, match="must be 0 to 1"):
                await producer.send_batch(batch, topic, partition=9)

    run(cluster, topic, scenario)
    assert len(read(cluster, topic, 5)) == 5


def test_many_and_more_than_the_memory(cluster: Cluster, topic: str) -> None:
    async def scenario(bootstrap: str, topic: str) -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, batch_size=2000, buffer_memory=8000
        ) as producer:
            future = await producer.send_many(topic, [b"x" * 200] * 500)
            for _ in range(500):
                await producer.send(topic, b"x" * 200)
            await producer.flush()
            assert future.succeeded()
            assert sum(part.count for part in future.ranges()) == 500

    run(cluster, topic, scenario)
    assert len(read(cluster, topic, 1000)) == 1000


def test_many_are_awaited_and_serialized(cluster: Cluster, topic: str) -> None:
    async def scenario(bootstrap: str, topic: str) -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            key_serializer=str.encode,
            value_serializer=lambda value: b"%d" % value,
            partitioner=lambda key, partitions, available: partitions[-1],
        ) as producer:
            places = await (await producer.send_many(topic, [("k", number) for number in range(9)]))
            assert [(place.partition, place.count) for place in places] == [(1, 9)]
            named = await producer.send_many(topic, [("k", 1)], partition=0)
            assert (await named)[0].partition == 0

    run(cluster, topic, scenario)
    assert sorted(read(cluster, topic, 10)) == sorted(b"%d" % n for n in [*range(9), 1])


def test_interceptors_hear_of_every_record(cluster: Cluster, topic: str) -> None:
    """Also of one that could not be serialized, or is too large."""
    heard: list[Any] = []

    class Ears:
        def on_send(self, record: Any) -> None:
            heard.append(record.value)

        def on_acknowledgement(self, metadata: Any, failure: Any) -> None:
            heard.append(type(failure) if metadata is None else metadata.offset)

    async def scenario(bootstrap: str, topic: str) -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            interceptors=[Ears()],
            value_serializer=str.encode,
            max_request_size=100_000,
        ) as producer:
            await producer.send_and_wait(topic, "one", partition=0)
            with pytest.raises(TypeError):
                await producer.send(topic, b"no text", partition=0)
            with pytest.raises(MessageSizeTooLargeError):
                await producer.send(topic, "x" * 200_000, partition=0)

    run(cluster, topic, scenario)
    assert heard == ["one", 0, b"no text", TypeError, "x" * 200_000, MessageSizeTooLargeError]


def test_cancelling_the_future_does_not_stop_the_record(cluster: Cluster, topic: str) -> None:
    async def scenario(bootstrap: str, topic: str) -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            (await producer.send(topic, b"v")).cancel()

    run(cluster, topic, scenario)
    assert read(cluster, topic, 1) == [b"v"]


async def aborted(producer: AIOKafkaProducer, topic: str) -> asyncio.Future[RecordMetadata]:
    """Leave a transaction by an exception, and return what it had sent."""
    try:
        async with producer.transaction():
            future = await producer.send(topic, b"bad")
            raise ZeroDivisionError
    except ZeroDivisionError:
        return future


def test_transactions_as_blocks(cluster: Cluster, topic: str) -> None:
    async def scenario(bootstrap: str, topic: str) -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=topic
        ) as producer:
            async with producer.transaction():
                await producer.send(topic, b"good")
                await producer.send_offsets_to_transaction({TopicPartition(topic, 0): 3}, topic)
            future = await aborted(producer, topic)
            assert isinstance(future.exception(), TransactionAbortedError)
            with pytest.raises(IllegalStateError, match="not in a transaction"):
                await producer.send(topic, b"bad")
            await producer.begin_transaction()
            await producer.send(topic, b"good")
            await producer.commit_transaction()

    run(cluster, topic, scenario)
    committed = read(cluster, topic, 2, **{"isolation.level": "read_committed"})
    assert committed == [b"good", b"good"]


def test_mistakes_are_named(cluster: Cluster, topic: str) -> None:
    async def scenario(bootstrap: str, topic: str) -> None:
        unstarted = AIOKafkaProducer(bootstrap_servers=bootstrap)
        with pytest.raises(ProducerClosed, match=r"await start\(\) first"):
            await unstarted.send(topic, b"v")
        nobody = AIOKafkaProducer(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=100)
        with pytest.raises(NoBrokersAvailable):
            await nobody.start()
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            with pytest.raises(IllegalOperation, match="transactional_id"):
                await producer.begin_transaction()
            with pytest.raises(TypeError, match="value is of type str"):
                await producer.send(topic, "text")

    run(cluster, topic, scenario)


def test_the_loop_that_is_given_is_the_one_that_runs(cluster: Cluster, topic: str) -> None:
    async def scenario(bootstrap: str, topic: str) -> None:
        running = asyncio.get_running_loop()
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, loop=running) as producer:
            await producer.send_and_wait(topic, b"v")
        with pytest.raises(IllegalStateError, match="start"):
            await AIOKafkaProducer(bootstrap_servers=bootstrap, loop=another).start()
        with pytest.raises(IllegalStateError, match="start"):
            await AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, loop=another).start()
        with pytest.raises(IllegalStateError, match="start"):
            await AIOKafkaAdminClient(bootstrap_servers=bootstrap, loop=another).start()

    another = asyncio.new_event_loop()
    run(cluster, topic, scenario)
    another.close()


def test_rows_that_always_come_too_late_for_memory(cluster: Cluster, topic: str) -> None:
    """Room that others take again and again does not make a call wait beyond its time."""

    async def scenario(bootstrap: str, topic: str) -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, max_block_ms=1000) as producer:
            await producer._running().topics.know(topic, 60_000)
            asked = 0

            def refuse(row: int, segments: list[Any], in_turn: bool) -> tuple[int, int]:
                nonlocal asked
                asked += 1
                return 0, Refusal.MEMORY

            with pytest.raises(KafkaTimeoutError, match=r"max\.block\.ms=1000"):
                await producer._append_rows(topic, refuse, [])
            assert asked > 1

    run(cluster, topic, scenario)


def test_memory_that_is_taken_for_too_long(cluster: Cluster, topic: str) -> None:
    async def scenario(bootstrap: str, topic: str) -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, batch_size=1000, buffer_memory=1000, max_block_ms=1000
        ) as producer:
            core = producer._running()
            await core.topics.know(topic, 60_000)
            ready = core.cluster_client.ready
            core.cluster_client.ready = lambda *_, **__: None  # type: ignore[method-assign]
            await producer.send(topic, b"x" * 800)
            with pytest.raises(KafkaTimeoutError, match=r"buffer\.memory=1000 is full"):
                await producer.send(topic, b"x" * 800)
            core.cluster_client.ready = ready  # type: ignore[method-assign]
            await producer.flush()

    run(cluster, topic, scenario)


def test_a_large_record_gets_its_memory_among_many_small_senders(
    cluster: Cluster, topic: str
) -> None:
    """First come, first served: small records that come later do not take what it waits for."""

    async def scenario(bootstrap: str, topic: str) -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, batch_size=1000, buffer_memory=16_000
        ) as producer:
            core = producer._running()
            await core.topics.know(topic, 60_000)
            core.cluster_client.ready = lambda *_, **__: None  # type: ignore[method-assign]
            filling = [
                core.accumulator.append(topic, b"f" * 900, partition=0).batch for _ in range(16)
            ]
            order: list[str] = []

            async def send(name: str, size: int) -> None:
                await producer.send(topic, b"x" * size, partition=0)
                order.append(name)

            senders = [asyncio.create_task(send("large", 12_000))]
            senders += [asyncio.create_task(send(f"small-{n}", 900)) for n in range(20)]
            try:
                for number, batch in enumerate(filling, 1):
                    senders.append(asyncio.create_task(send(f"late-{number}", 900)))
                    await _some_turns()
                    batch.complete(0)
                    await _some_turns()
                    if order:
                        break
                assert order[0] == "large"
                assert number == 13, "12,000 bytes and their headers fit into 13 batches"
                for batch in filling[number:]:
                    batch.complete(0)
                    await _some_turns()
                assert order == ["large", "small-0", "small-1"]
            finally:
                for sender in senders:
                    sender.cancel()
                await asyncio.gather(*senders, return_exceptions=True)
                core.sender.collect(core.now_ms())
                core.sender.abandon(ProducerClosed("the test is over"), in_flight=True)
            assert not core.accumulator.pool.waiting

    run(cluster, topic, scenario)


async def _some_turns() -> None:
    """Let everybody go on who can."""
    for _ in range(10):
        await asyncio.sleep(0)
