"""What aiokafka's documentation shows, with aiokafka and with ours: one import differs.

The file also runs against Apache Kafka (tests/interop/test_clients.py), with our library alone.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from tests.compat.samples import until_deadline

pytestmark = pytest.mark.compat

START_MS = 1_700_000_000_000


class Library:
    """The module that a program imports from, and that of its errors."""

    def __init__(self, root: str, errors: str) -> None:
        self.root = root
        self.aio: Any = importlib.import_module(root)
        self.errors: Any = importlib.import_module(errors)


@pytest.fixture(
    params=[("aiokafka", "aiokafka.errors"), ("barnabas.aio", "barnabas.errors")],
    ids=["aiokafka", "barnabas"],
)
def library(request: pytest.FixtureRequest) -> Library:
    return Library(*request.param)


@pytest.fixture(scope="session")
def bootstrap(quick_bootstrap: str) -> str:
    """A broker where groups do not wait for more members."""
    return quick_bootstrap


@pytest.fixture
def make_topic(bootstrap: str, new_name: Any) -> Callable[..., str]:
    def make(partitions: int = 1) -> str:
        topic: str = new_name()
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)
        for _ in until_deadline(f"leaders of {topic}"):
            found = admin.list_topics(topic, timeout=30).topics[topic].partitions
            if len(found) == partitions and all(each.leader >= 0 for each in found.values()):
                break
        return topic

    return make


@pytest.fixture
def topic(make_topic: Callable[..., str]) -> str:
    return make_topic()


@asynccontextmanager
async def running(client: Any) -> AsyncIterator[Any]:
    """Start and stop a client, as every example does."""
    await client.start()
    try:
        yield client
    finally:
        await client.stop()


@asynccontextmanager
async def reader(
    library: Library, bootstrap: str, *topics: str, **options: Any
) -> AsyncIterator[Any]:
    options = {"auto_offset_reset": "earliest", **options}
    consumer = library.aio.AIOKafkaConsumer(*topics, bootstrap_servers=bootstrap, **options)
    async with running(consumer):
        yield consumer


async def fill(
    library: Library, bootstrap: str, topic: str, count: int, partition: int = 0
) -> None:
    """Send the values b"0", b"1", …, each a second after the one before."""
    async with running(library.aio.AIOKafkaProducer(bootstrap_servers=bootstrap)) as producer:
        for number in range(count):
            await producer.send(
                topic,
                b"%d" % number,
                partition=partition,
                timestamp_ms=START_MS + 1000 * number,
            )
        await producer.flush()


async def take(consumer: Any, count: int) -> list[Any]:
    """Iterate over so many records."""
    found: list[Any] = []
    async with asyncio.timeout(30):
        async for record in consumer:
            found.append(record)
            if len(found) == count:
                return found
    raise AssertionError("iteration ended")


async def eventually(what: str, done: Callable[[], bool]) -> None:
    for _ in until_deadline(what):
        if done():
            return
        await asyncio.sleep(0.01)


# Producers.


def test_send_and_wait(library: Library, bootstrap: str, topic: str) -> None:
    async def program() -> None:
        producer = library.aio.AIOKafkaProducer(bootstrap_servers=bootstrap)
        await producer.start()
        try:
            sent = await producer.send_and_wait(topic, b"Super message", timestamp_ms=START_MS)
        finally:
            await producer.stop()
        assert (sent.topic, sent.partition, sent.offset) == (topic, 0, 0)
        assert sent.topic_partition == library.aio.TopicPartition(topic, 0)
        assert (sent.timestamp, sent.timestamp_type) == (START_MS, 0)

    asyncio.run(program())


def test_a_future_of_a_partition(
    library: Library, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(2)

    async def program() -> None:
        async with running(library.aio.AIOKafkaProducer(bootstrap_servers=bootstrap)) as producer:
            future = await producer.send(topic, b"Super message", partition=1)
            assert (await future).partition == 1
            assert await producer.partitions_for(topic) == {0, 1}

    asyncio.run(program())


def test_idempotence(library: Library, bootstrap: str, topic: str) -> None:
    async def program() -> None:
        with pytest.raises(ValueError):
            library.aio.AIOKafkaProducer(
                bootstrap_servers=bootstrap, enable_idempotence=True, acks=1
            )
        producer = library.aio.AIOKafkaProducer(
            bootstrap_servers=bootstrap, enable_idempotence=True
        )
        async with running(producer):
            assert (await producer.send_and_wait(topic, b"Super message")).offset == 0

    asyncio.run(program())


def test_batches_by_hand(library: Library, bootstrap: str, topic: str) -> None:
    async def program() -> None:
        producer = library.aio.AIOKafkaProducer(bootstrap_servers=bootstrap, max_batch_size=1000)
        sizes = []
        async with running(producer):
            batch, number = producer.create_batch(), 0
            while number < 100:
                taken = batch.append(key=None, value=b"Test message %d" % number, timestamp=None)
                if taken is None:
                    sizes.append(batch.record_count())
                    await producer.send_batch(batch, topic, partition=0)
                    batch = producer.create_batch()
                    continue
                number += 1
            batch.close()
            sizes.append(batch.record_count())
            future = await producer.send_batch(batch, topic, partition=0)
            record = await future
        assert sum(sizes) == 100
        assert len(sizes) > 1
        assert record.offset == 100 - sizes[-1]
        async with reader(library, bootstrap, topic) as consumer:
            values = [found.value for found in await take(consumer, 100)]
        assert values == [b"Test message %d" % number for number in range(100)]

    asyncio.run(program())


def test_a_partitioner_of_the_users_own(
    library: Library, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(5)

    def partitioner(key: bytes, all_partitions: list[int], available: list[int]) -> int:
        return {b"first": all_partitions[0], b"last": all_partitions[-1]}.get(key, available[1])

    async def program() -> list[int]:
        producer = library.aio.AIOKafkaProducer(
            bootstrap_servers=bootstrap, partitioner=partitioner
        )
        async with running(producer):
            return [
                (await producer.send_and_wait(topic, b"v", key=key)).partition
                for key in (b"last", b"some", b"first")
            ]

    last, some, first = asyncio.run(program())
    assert (first, last) == (0, 4)
    assert some in range(5)


def test_json_in_compressed_batches(library: Library, bootstrap: str, topic: str) -> None:
    sent = [{"a": 123.4, "b": "some string"}, [1, 2, 3, 4]]

    async def program() -> list[Any]:
        producer = library.aio.AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            value_serializer=lambda value: json.dumps(value).encode(),
            compression_type="gzip",
        )
        async with running(producer):
            for value in sent:
                await producer.send(topic, value)
        async with reader(library, bootstrap, topic, value_deserializer=json.loads) as consumer:
            data = await consumer.getmany(timeout_ms=30_000)
            return [record.value for records in data.values() for record in records]

    assert asyncio.run(program()) == sent


def test_transactions(library: Library, bootstrap: str, topic: str) -> None:
    async def fails_inside(producer: Any) -> None:
        async with producer.transaction():
            await producer.send_and_wait(topic, b"never seen")
            raise ZeroDivisionError

    async def program() -> None:
        producer = library.aio.AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
        async with running(producer):
            async with producer.transaction():
                await producer.send_and_wait(topic, b"Super transactional message")
            with pytest.raises(ZeroDivisionError):
                await fails_inside(producer)
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"the second")
            await producer.commit_transaction()
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"never seen either")
            await producer.abort_transaction()
        options = {"isolation_level": "read_committed"}
        async with reader(library, bootstrap, topic, **options) as consumer:
            found = [record.value for record in await take(consumer, 2)]
            assert found == [b"Super transactional message", b"the second"]
            assert await consumer.getmany(timeout_ms=100) == {}

    asyncio.run(program())


def test_an_old_producer_of_the_same_name_is_fenced(
    library: Library, bootstrap: str, topic: str
) -> None:
    async def program() -> None:
        options = {"bootstrap_servers": bootstrap, "transactional_id": topic}
        old = library.aio.AIOKafkaProducer(**options)
        async with running(old):
            await old.begin_transaction()
            await old.send_and_wait(topic, b"of the old one")
            async with running(library.aio.AIOKafkaProducer(**options)) as new:
                with pytest.raises(library.errors.ProducerFenced):
                    await old.commit_transaction()
                async with new.transaction():
                    await new.send_and_wait(topic, b"of the new one")
        async with reader(library, bootstrap, topic, isolation_level="read_committed") as consumer:
            assert (await take(consumer, 1))[0].value == b"of the new one"

    asyncio.run(program())


# Consumers.


def test_iterate(library: Library, bootstrap: str, topic: str) -> None:
    async def program() -> None:
        await fill(library, bootstrap, topic, 3)
        async with reader(library, bootstrap, topic) as consumer:
            found = await take(consumer, 3)
        assert [(r.topic, r.partition, r.offset, r.key, r.value, r.timestamp) for r in found] == [
            (topic, 0, number, None, b"%d" % number, START_MS + 1000 * number)
            for number in range(3)
        ]

    asyncio.run(program())


def test_positions_and_commits(library: Library, bootstrap: str, topic: str) -> None:
    async def program() -> None:
        await fill(library, bootstrap, topic, 3)
        place = library.aio.TopicPartition(topic, 0)
        options = {"group_id": topic, "enable_auto_commit": False}
        async with reader(library, bootstrap, topic, **options) as consumer:
            record = await consumer.getone()
            assert await consumer.position(place) == record.offset + 1
            assert await consumer.committed(place) is None
            await consumer.commit()
            assert await consumer.committed(place) == 1
            await consumer.commit({place: (2, "by hand")})
            assert await consumer.committed(place) == 2
        async with reader(library, bootstrap, topic, **options) as consumer:
            assert (await consumer.getone()).value == b"2"

    asyncio.run(program())


def test_commits_by_partition(
    library: Library, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(2)

    async def program() -> None:
        for partition in (0, 1):
            await fill(library, bootstrap, topic, 5, partition)
        seen = 0
        options = {"group_id": topic, "enable_auto_commit": False}
        async with reader(library, bootstrap, topic, **options) as consumer:
            for _ in until_deadline("ten records"):
                result = await consumer.getmany(timeout_ms=1000, max_records=3)
                for place, records in result.items():
                    assert {record.partition for record in records} == {place.partition}
                    seen += len(records)
                    await consumer.commit({place: records[-1].offset + 1})
                if seen == 10:
                    break
            for place in consumer.assignment():
                assert await consumer.committed(place) == 5

    asyncio.run(program())


def test_auto_commit(library: Library, bootstrap: str, topic: str) -> None:
    async def program() -> None:
        await fill(library, bootstrap, topic, 5)
        options = {"group_id": topic, "auto_commit_interval_ms": 1000}
        async with reader(library, bootstrap, topic, **options) as consumer:
            assert len(await take(consumer, 3)) == 3
        async with reader(library, bootstrap, topic, **options) as consumer:
            assert (await consumer.getone()).offset == 3

    asyncio.run(program())


def test_seek(library: Library, bootstrap: str, topic: str) -> None:
    async def program() -> None:
        await fill(library, bootstrap, topic, 10)
        place = library.aio.TopicPartition(topic, 0)
        async with reader(library, bootstrap, topic) as consumer:
            record = await consumer.getone()
            consumer.seek(place, record.offset)
            assert await consumer.getone() == record
            consumer.seek(place, 7)
            assert (await consumer.getone()).offset == 7
            await consumer.seek_to_beginning(place)
            assert (await consumer.getone()).offset == 0
            await consumer.seek_to_end(place)
            assert await consumer.position(place) == 10
            assert await consumer.beginning_offsets([place]) == {place: 0}
            assert await consumer.end_offsets([place]) == {place: 10}
            times = await consumer.offsets_for_times({place: START_MS + 4500})
            assert (times[place].offset, times[place].timestamp) == (5, START_MS + 5000)
            consumer.seek(place, times[place].offset)
            assert (await consumer.getone()).value == b"5"

    asyncio.run(program())


def test_only_the_newest(library: Library, bootstrap: str, topic: str) -> None:
    async def program() -> None:
        await fill(library, bootstrap, topic, 3)
        async with reader(library, bootstrap, topic, auto_offset_reset="latest") as consumer:
            place = library.aio.TopicPartition(topic, 0)
            assert await consumer.position(place) == 3
            await fill(library, bootstrap, topic, 1)
            assert (await take(consumer, 1))[0].offset == 3

    asyncio.run(program())


def test_assign_by_hand(library: Library, bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(3)

    async def program() -> None:
        await fill(library, bootstrap, topic, 2, partition=1)
        await fill(library, bootstrap, topic, 2, partition=2)
        places = [library.aio.TopicPartition(topic, number) for number in (1, 2)]
        consumer = library.aio.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest"
        )
        consumer.assign(places)
        with pytest.raises(library.errors.IllegalStateError):
            consumer.subscribe([topic])
        async with running(consumer):
            assert consumer.assignment() == set(places)
            found = await take(consumer, 4)
        assert Counter(record.partition for record in found) == {1: 2, 2: 2}

    asyncio.run(program())


def test_offsets_kept_elsewhere(library: Library, bootstrap: str, topic: str) -> None:
    async def program() -> None:
        await fill(library, bootstrap, topic, 6)
        place = library.aio.TopicPartition(topic, 0)
        store = {"offset": -1, "count": 0}
        for upto in (2, 6):
            consumer = library.aio.AIOKafkaConsumer(
                bootstrap_servers=bootstrap, enable_auto_commit=False
            )
            async with running(consumer):
                consumer.assign([place])
                consumer.seek(place, store["offset"] + 1)
                async for record in consumer:
                    store = {"offset": record.offset, "count": store["count"] + 1}
                    if store["count"] == upto:
                        break
        assert store == {"offset": 5, "count": 6}

    asyncio.run(program())


def test_outdated_offsets(library: Library, bootstrap: str, topic: str) -> None:
    async def program() -> None:
        await fill(library, bootstrap, topic, 2)
        place = library.aio.TopicPartition(topic, 0)
        async with reader(library, bootstrap, auto_offset_reset="none") as consumer:
            consumer.assign([place])
            consumer.seek(place, 100)
            with pytest.raises(library.errors.OffsetOutOfRangeError) as caught:
                await asyncio.wait_for(consumer.getone(), 30)
            assert dict(caught.value.args[0]) == {place: 100}
            await consumer.seek_to_beginning(*caught.value.args[0])
            assert (await consumer.getone()).offset == 0

    asyncio.run(program())


def test_a_pattern_finds_later_topics(library: Library, bootstrap: str, new_name: Any) -> None:
    prefix = new_name().replace(".", "-")
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def create(topic: str) -> None:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)

    async def program() -> None:
        create(f"{prefix}-1")
        create(f"other-{prefix}")
        await fill(library, bootstrap, f"{prefix}-1", 1)
        options = {"group_id": prefix, "metadata_max_age_ms": 200}
        async with reader(library, bootstrap, **options) as consumer:
            consumer.subscribe(pattern=f"^{prefix}-.*$")
            assert (await take(consumer, 1))[0].topic == f"{prefix}-1"
            create(f"{prefix}-2")
            await fill(library, bootstrap, f"{prefix}-2", 1)
            assert (await take(consumer, 1))[0].topic == f"{prefix}-2"
            assert consumer.subscription() == {f"{prefix}-1", f"{prefix}-2"}

    asyncio.run(program())


def test_partitions_that_lag_come_first(
    library: Library, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(2)

    async def program() -> None:
        for partition in (0, 1):
            await fill(library, bootstrap, topic, 4, partition)
        first, second = (library.aio.TopicPartition(topic, number) for number in (0, 1))
        async with reader(library, bootstrap) as consumer:
            consumer.assign([first, second])
            found = await consumer.getmany(first, timeout_ms=30_000)
            assert set(found) == {first}
            assert (await consumer.getone(second)).partition == 1
            assert consumer.highwater(second) == 4
            assert consumer.highwater(second) - await consumer.position(second) == 3
            assert consumer.last_poll_timestamp(second) > START_MS

    asyncio.run(program())


def test_pause_and_resume(library: Library, bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(2)

    async def program() -> None:
        for partition in (0, 1):
            await fill(library, bootstrap, topic, 3, partition)
        first, second = (library.aio.TopicPartition(topic, number) for number in (0, 1))
        async with reader(library, bootstrap) as consumer:
            consumer.assign([first, second])
            consumer.pause(first)
            assert consumer.paused() == {first}
            assert {record.partition for record in await take(consumer, 3)} == {1}
            consumer.resume(first)
            assert consumer.paused() == set()
            assert {record.partition for record in await take(consumer, 3)} == {0}

    asyncio.run(program())


def test_members_share_partitions_and_listeners_are_told(
    library: Library, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(2)

    class Listener(library.aio.ConsumerRebalanceListener):  # type: ignore[misc, name-defined]
        def __init__(self, consumer: Any) -> None:
            self.consumer = consumer
            self.assigned: list[Any] = []
            self.revoked: list[Any] = []

        async def on_partitions_revoked(self, revoked: Any) -> None:
            self.revoked.append(set(revoked))

        async def on_partitions_assigned(self, assigned: Any) -> None:
            self.assigned.append(set(assigned))
            if assigned:
                await self.consumer.seek_to_beginning(*assigned)

    async def program() -> None:
        await fill(library, bootstrap, topic, 2)
        both = {library.aio.TopicPartition(topic, number) for number in (0, 1)}
        options = {"group_id": topic, "heartbeat_interval_ms": 100, "auto_offset_reset": "none"}
        async with reader(library, bootstrap, **options) as consumer:
            listener = Listener(consumer)
            consumer.subscribe(topics=[topic], listener=listener)
            assert len(await take(consumer, 2)) == 2
            assert both in listener.assigned
            async with reader(library, bootstrap, topic, group_id=topic) as other:
                await eventually(
                    "a partition each",
                    lambda: len(consumer.assignment()) == len(other.assignment()) == 1,
                )
                assert consumer.assignment() | other.assignment() == both
            assert any(listener.revoked)
            await eventually("both again", lambda: consumer.assignment() == both)

    asyncio.run(program())


def test_committed_records_alone(library: Library, bootstrap: str, topic: str) -> None:
    async def program() -> None:
        place = library.aio.TopicPartition(topic, 0)
        producer = library.aio.AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
        async with running(producer):
            async with producer.transaction():
                await producer.send(topic, b"1")
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"2")
            options = {"isolation_level": "read_committed"}
            async with reader(library, bootstrap, topic, **options) as consumer:
                assert (await take(consumer, 1))[0].value == b"1"
                stable = consumer.last_stable_offset(place)
                assert await consumer.end_offsets([place]) == {place: stable}
                assert await consumer.getmany(timeout_ms=100) == {}
                await producer.commit_transaction()
                assert (await take(consumer, 1))[0].value == b"2"

    asyncio.run(program())


def test_consume_process_produce_in_transactions(
    library: Library, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    source, target = make_topic(), make_topic()

    async def program() -> None:
        await fill(library, bootstrap, source, 5)
        place = library.aio.TopicPartition(source, 0)
        options = {
            "group_id": source,
            "enable_auto_commit": False,
            "isolation_level": "read_committed",
        }
        producer = library.aio.AIOKafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=target
        )
        async with running(producer), reader(library, bootstrap, source, **options) as consumer:
            done = 0
            while done < 5:
                batches = await consumer.getmany(timeout_ms=30_000, max_records=2)
                async with producer.transaction():
                    offsets = {}
                    for each, records in batches.items():
                        for record in records:
                            await producer.send(target, record.value * 2)
                        offsets[each] = records[-1].offset + 1
                        done += len(records)
                    await producer.send_offsets_to_transaction(offsets, source)
            for _ in until_deadline("the last marker's offset counts"):
                if await consumer.committed(place) == 5:
                    break
        async with reader(library, bootstrap, target, isolation_level="read_committed") as found:
            values = [record.value for record in await take(found, 5)]
        assert values == [b"00", b"11", b"22", b"33", b"44"]

    asyncio.run(program())


def test_stopped_consumers_say_so(library: Library, bootstrap: str, topic: str) -> None:
    async def program() -> None:
        async with reader(library, bootstrap, topic) as consumer:
            waiting = asyncio.create_task(consumer.getone())
            await asyncio.sleep(0)
        with pytest.raises(library.errors.ConsumerStoppedError):
            await waiting
        with pytest.raises(library.errors.ConsumerStoppedError):
            await consumer.getmany()

    asyncio.run(program())


def test_many_workers_in_one_loop(
    library: Library, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(4)

    async def program() -> None:
        for partition in range(4):
            await fill(library, bootstrap, topic, 3, partition)
        seen: list[tuple[int, int]] = []
        options = {
            "bootstrap_servers": bootstrap,
            "group_id": topic,
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "heartbeat_interval_ms": 100,
        }
        consumers = [library.aio.AIOKafkaConsumer(**options) for _ in range(2)]

        async def work(consumer: Any) -> None:
            consumer.subscribe([topic])
            await consumer.start()
            try:
                while True:
                    record = await consumer.getone()
                    seen.append((record.partition, record.offset))
            finally:
                await consumer.stop()

        tasks = [asyncio.create_task(work(consumer)) for consumer in consumers]
        wanted = {(partition, offset) for partition in range(4) for offset in range(3)}
        await eventually("every record", lambda: set(seen) == wanted)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(program())
