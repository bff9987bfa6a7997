"""One program, two imports: what a program sees is what kafka-python and aiokafka show it.

Each program writes down everything that it sees; the transcripts must be equal.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.consumer.logs import T0, numbered, write

import barnabas
import barnabas.aio
import barnabas.errors
from barnabas.model.ids import TopicPartition
from barnabas.testing import Cluster

pytestmark = pytest.mark.compat

Topic = Callable[..., str]


def failure_of(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as failure:  # noqa: BLE001  # the class of any of them is what is compared
        return type(failure).__name__
    return "nothing"


def read(consumer: Any, count: int) -> list[tuple[Any, ...]]:
    """Poll until so many records came; return all their fields."""
    records: list[tuple[Any, ...]] = []
    while len(records) < count:
        for found in consumer.poll(timeout_ms=2000).values():
            records += [tuple(record) for record in found]
    return sorted(records, key=lambda fields: fields[:4])


def plain_program(kafka: Any, bootstrap: str, name: str, group: str) -> list[Any]:
    """Use nearly everything that a plain consumer without a group offers."""
    seen: list[Any] = []
    one, two = kafka.TopicPartition(name, 0), kafka.TopicPartition(name, 1)
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        max_poll_records=7,
        consumer_timeout_ms=3000,
    )
    seen.append(consumer.subscription())
    seen.append(consumer.assignment())
    consumer.assign([one, two])
    seen.append(consumer.assignment())
    records = read(consumer, 21)
    seen.append(records)
    seen.append([consumer.position(each) for each in (one, two)])
    seen.append([consumer.highwater(each) for each in (one, two)])
    seen.append(consumer.beginning_offsets([one, two]))
    seen.append(consumer.end_offsets([one, two]))
    found = consumer.offsets_for_times({one: T0 + 3, two: T0 + 10_000})
    seen.append((tuple(found[one]), found[two]))
    consumer.seek(one, 8)
    seen.append(read(consumer, 2))
    consumer.pause(two)
    seen.append(consumer.paused())
    consumer.seek_to_beginning(one, two)
    seen.append(read(consumer, 10))
    seen.append(consumer.poll(100))
    consumer.resume(two)
    seen.append(read(consumer, 11))
    consumer.seek_to_end()
    seen.append([consumer.position(each) for each in (one, two)])
    consumer.seek(two, 5)
    seen.append([tuple(record) for record in consumer])
    seen.append(consumer.partitions_for_topic(name))
    seen.append(name in consumer.topics())
    for call in (
        lambda: consumer.seek(one, -1),
        lambda: consumer.seek(kafka.TopicPartition("x", 0), 1),
        lambda: consumer.seek_to_end(kafka.TopicPartition("x", 0)),
        lambda: consumer.position(kafka.TopicPartition("x", 0)),
        lambda: consumer.position("x"),
        lambda: consumer.pause("x"),
        lambda: consumer.poll(-1),
        lambda: consumer.poll(max_records=0),
        lambda: consumer.poll(max_records="1"),
        lambda: consumer.commit(),
        lambda: consumer.committed(one),
        lambda: consumer.subscribe([name]),
    ):
        seen.append(failure_of(call))
    consumer.unsubscribe()
    seen.append(failure_of(lambda: consumer.subscribe()))
    seen.append(failure_of(lambda: consumer.subscribe("text")))
    seen.append(failure_of(lambda: consumer.subscribe([5])))
    seen.append(failure_of(lambda: consumer.subscribe(["a b"])))
    consumer.close()
    consumer.close()
    seen.append(failure_of(lambda: consumer.poll()))
    seen.append(list(consumer))
    return seen


def group_program(kafka: Any, bootstrap: str, name: str, group: str) -> list[Any]:
    """Join a group, commit in several ways, and go on as a successor."""
    seen: list[Any] = []
    one = kafka.TopicPartition(name, 0)

    class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc,name-defined]
        # kafka-python also tells of rebalances that change nothing.
        def on_partitions_revoked(self, revoked: Any) -> None:
            if revoked:
                seen.append(("revoked", sorted(revoked)))

        def on_partitions_assigned(self, assigned: Any) -> None:
            if assigned:
                seen.append(("assigned", sorted(assigned)))

    options = {"bootstrap_servers": bootstrap, "group_id": group, "auto_offset_reset": "earliest"}
    consumer = kafka.KafkaConsumer(enable_auto_commit=False, **options)
    consumer.subscribe([name], listener=Listener())
    seen.append(consumer.subscription())
    seen.append(len(read(consumer, 21)))
    seen.append(consumer.committed(one))
    consumer.commit()
    seen.append(consumer.committed(one))
    consumer.commit({one: kafka.OffsetAndMetadata(4, "note", -1)})
    seen.append(tuple(consumer.committed(one, metadata=True)))
    seen.append(failure_of(lambda: consumer.assign([one])))
    metadata = consumer.group_metadata()
    seen.append((metadata.group_id, metadata.generation_id > 0, bool(metadata.member_id)))
    consumer.close()
    with kafka.KafkaConsumer(name, **options) as successor:
        seen.append([fields[3] for fields in read(successor, 6)])
    with kafka.KafkaConsumer(**options) as third:
        seen.append([third.committed(kafka.TopicPartition(name, n)) for n in (0, 1)])
    return seen


@pytest.mark.parametrize("program", [plain_program, group_program])
def test_as_kafka_python(cluster: Cluster, topic: Topic, program: Callable[..., list[Any]]) -> None:
    """A program for kafka-python sees the same with our import."""
    kafka = pytest.importorskip("kafka")
    transcripts = []
    name = topic(partitions=2, records=10)
    extra = [(T0, None, None, [("h", b"1"), ("g", b"")])]
    write(cluster.bootstrap, TopicPartition(name, 1), extra)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what kafka-python says about itself
        for number, library in enumerate((kafka, barnabas)):
            group = f"{program.__name__}-{number}"
            transcript = program(library, cluster.bootstrap, name, group)
            transcripts.append([_neutral(each, group) for each in transcript])
    assert transcripts[1] == transcripts[0]


def _neutral(seen: Any, group: str) -> Any:
    """Leave out what differs from run to run."""
    if isinstance(seen, tuple):
        return tuple("group" if each == group else _neutral(each, group) for each in seen)
    return seen


async def aio_program(aio: Any, errors: Any, bootstrap: str, name: str, group: str) -> list[Any]:
    """Use nearly everything that an asyncio consumer offers."""
    seen: list[Any] = []
    one, two = aio.TopicPartition(name, 0), aio.TopicPartition(name, 1)

    def fields(record: Any) -> tuple[Any, ...]:
        return (
            record.topic,
            record.partition,
            record.offset,
            record.timestamp,
            record.timestamp_type,
            record.key,
            record.value,
            record.checksum,
            record.serialized_key_size,
            record.serialized_value_size,
            tuple(record.headers),
        )

    async def failure(awaitable: Any) -> str:
        try:
            await awaitable
        except Exception as raised:  # noqa: BLE001  # its class is what is compared
            return type(raised).__name__
        return "nothing"

    async def many(consumer: Any, count: int) -> list[Any]:
        found: list[Any] = []
        while len(found) < count:
            for records in (await consumer.getmany(timeout_ms=2000)).values():
                found += [fields(record) for record in records]
        return sorted(found, key=lambda each: each[:3])

    options = {
        "bootstrap_servers": bootstrap,
        "group_id": group,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
    }
    consumer = aio.AIOKafkaConsumer(name, **options)
    await consumer.start()
    seen.append(consumer.assignment())
    seen.append(set(consumer.subscription()))
    seen.append(await many(consumer, 21))
    seen.append([await consumer.position(each) for each in (one, two)])
    seen.append([consumer.highwater(each) for each in (one, two)])
    seen.append([consumer.last_stable_offset(each) for each in (one, two)])
    seen.append(consumer.last_poll_timestamp(one) > T0)
    consumer.seek(one, 7)
    seen.append([fields(await consumer.getone(one)) for _ in range(3)])
    seen.append(await consumer.getmany())
    seen.append(await consumer.committed(one))
    await consumer.commit({one: 3})
    await consumer.commit({two: (4, "text")})
    seen.append([await consumer.committed(each) for each in (one, two)])
    seen.append(await consumer.seek_to_committed(one))
    seen.append(await consumer.seek_to_beginning(two))
    seen.append([await consumer.position(each) for each in (one, two)])
    seen.append(await many(consumer, 18))
    seen.append(await consumer.seek_to_end())
    seen.append(await consumer.beginning_offsets([one, two]))
    seen.append(await consumer.end_offsets([one, two]))
    times = await consumer.offsets_for_times({one: T0 + 3, two: T0 + 10_000})
    seen.append((tuple(times[one])[:2], times[two]))
    seen.append(consumer.partitions_for_topic(name))
    seen.append(name in await consumer.topics())
    consumer.pause(one)
    seen.append(consumer.paused())
    consumer.resume(one)
    consumer.seek(two, 9)
    async for record in consumer:
        seen.append(fields(record))
        if record.offset == 10:
            break
    seen.append(await failure(consumer.commit({aio.TopicPartition(name, 9): 1})))
    seen.append(await failure(consumer.commit({one: "3"})))
    seen.append(await failure(consumer.seek_to_end(aio.TopicPartition(name, 9))))
    seen.append(failure_of(lambda: consumer.seek(one, -1)))
    seen.append(failure_of(lambda: consumer.subscribe()))
    await consumer.stop()
    await consumer.stop()
    seen.append(await failure(consumer.getone()))
    alone = aio.AIOKafkaConsumer(name, bootstrap_servers=bootstrap)
    async with alone:
        await alone.seek_to_end()
        seen.append(await failure(alone.commit()))
        seen.append(await failure(alone.committed(one)))
    return seen


def test_as_aiokafka(cluster: Cluster, topic: Topic) -> None:
    """A program for aiokafka sees the same with our import."""
    aiokafka = pytest.importorskip("aiokafka")
    name = topic(partitions=2, records=10)
    extra = [(T0, None, None, [("h", b"1"), ("g", b"")])]
    write(cluster.bootstrap, TopicPartition(name, 1), extra)
    transcripts = [
        asyncio.run(aio_program(library, errors, cluster.bootstrap, name, group))
        for library, errors, group in (
            (aiokafka, aiokafka.errors, "aio-theirs"),
            (barnabas.aio, barnabas.errors, "aio-ours"),
        )
    ]
    assert transcripts[1] == transcripts[0]


def test_moving_between_topics(cluster: Cluster, topic: Topic) -> None:
    """Partitions of kafka-python's own class are accepted where programs mix the two."""
    kafka = pytest.importorskip("kafka")
    name = topic(records=3)
    with barnabas.KafkaConsumer(
        bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([kafka.TopicPartition(name, 0)])
        assert [fields[3] for fields in read(consumer, 3)] == [0, 1, 2]
        write(cluster.bootstrap, TopicPartition(name, 0), numbered(1, 3))
        assert consumer.end_offsets([kafka.TopicPartition(name, 0)]) == {(name, 0): 4}
