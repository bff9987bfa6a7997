"""Ways to read, by scenario and client: each a function that the child process of a run calls.

All read one partition by assignment, from its beginning, with each client's own options. Timing
begins with the first records that arrive. Imports are inside the ways: a process loads the client
that it measures and no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any

from bench.client_meter import Reading, run_on_uvloop

BATCH = 500

Way = Callable[[str, str, int], dict[str, float]]

# Barnabas.


def _ours(bootstrap: str, topic: str) -> Any:
    from barnabas import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, 0)])
    return consumer


def ours_lists(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    with closing(_ours(bootstrap, topic)) as consumer:
        return _polled(consumer, count)


def ours_iteration(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    with closing(_ours(bootstrap, topic)) as consumer:
        return _iterated(consumer, count)


def ours_table(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    import pyarrow  # noqa: F401  # loading it is no part of what is measured

    with closing(_ours(bootstrap, topic)) as consumer:
        reading = Reading(count)
        while not reading.add(consumer.poll_arrow(1000).num_rows):
            pass
        return reading.result()


# confluent-kafka.


def _confluent(bootstrap: str, topic: str) -> Any:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    return consumer


def confluent_lists(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    with closing(_confluent(bootstrap, topic)) as consumer:
        reading = Reading(count)
        while not reading.add(len(consumer.consume(BATCH, 1))):
            pass
        return reading.result()


def confluent_iteration(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    with closing(_confluent(bootstrap, topic)) as consumer:
        reading = Reading(count)
        poll = consumer.poll
        while not reading.add(poll(1) is not None):
            pass
        return reading.result()


def confluent_table(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    import pyarrow as pa

    with closing(_confluent(bootstrap, topic)) as consumer:
        reading = Reading(count)
        while True:
            messages = consumer.consume(BATCH, 1)
            batch = pa.record_batch(
                {
                    "offset": pa.array([message.offset() for message in messages], pa.int64()),
                    "key": pa.array([message.key() for message in messages], pa.binary()),
                    "value": pa.array([message.value() for message in messages], pa.binary()),
                }
            )
            if reading.add(batch.num_rows):
                return reading.result()


# kafka-python.


def _kafka_python(bootstrap: str, topic: str) -> Any:
    from kafka import KafkaConsumer, TopicPartition  # type: ignore[import-untyped]

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, 0)])
    return consumer


def kafka_python_lists(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    with closing(_kafka_python(bootstrap, topic)) as consumer:
        return _polled(consumer, count)


def kafka_python_iteration(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    with closing(_kafka_python(bootstrap, topic)) as consumer:
        return _iterated(consumer, count)


# asyncio: the same program for ours and for aiokafka.


def _asyncio_consumer(client: str, bootstrap: str, topic: str) -> Any:
    options = {"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest"}
    module: Any
    if client == "barnabas.aio":
        import barnabas.aio as module
    else:
        import aiokafka as module  # type: ignore[import-untyped, no-redef]
    consumer = module.AIOKafkaConsumer(**options)
    consumer.assign([module.TopicPartition(topic, 0)])
    return consumer


def _asyncio_lists(client: str) -> Way:
    async def program(bootstrap: str, topic: str, count: int) -> dict[str, float]:
        async with _asyncio_consumer(client, bootstrap, topic) as consumer:
            reading = Reading(count)
            while True:
                found = await consumer.getmany(timeout_ms=1000, max_records=BATCH)
                if reading.add(sum(map(len, found.values()))):
                    return reading.result()

    return run_on_uvloop(program)


def _asyncio_iteration(client: str) -> Way:
    async def program(bootstrap: str, topic: str, count: int) -> dict[str, float]:
        async with _asyncio_consumer(client, bootstrap, topic) as consumer:
            reading = Reading(count)
            async for _ in consumer:
                if reading.add(1):
                    break
            return reading.result()

    return run_on_uvloop(program)


async def _asyncio_table(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    import pyarrow  # noqa: F401

    async with _asyncio_consumer("barnabas.aio", bootstrap, topic) as consumer:
        reading = Reading(count)
        while True:
            if reading.add((await consumer.poll_arrow(1000)).num_rows):
                return reading.result()


def _polled(consumer: Any, count: int) -> dict[str, float]:
    reading = Reading(count)
    while not reading.add(sum(map(len, consumer.poll(1000, BATCH).values()))):
        pass
    return reading.result()


def _iterated(records: Iterable[object], count: int) -> dict[str, float]:
    reading = Reading(count)
    for _ in records:
        if reading.add(1):
            break
    return reading.result()


WAYS: dict[str, dict[str, Way]] = {
    f"read lists of {BATCH}": {
        "barnabas": ours_lists,
        "confluent-kafka": confluent_lists,
        "barnabas.aio": _asyncio_lists("barnabas.aio"),
        "aiokafka": _asyncio_lists("aiokafka"),
        "kafka-python": kafka_python_lists,
    },
    "read one by one": {
        "barnabas": ours_iteration,
        "confluent-kafka": confluent_iteration,
        "barnabas.aio": _asyncio_iteration("barnabas.aio"),
        "aiokafka": _asyncio_iteration("aiokafka"),
        "kafka-python": kafka_python_iteration,
    },
    "read Arrow batches (confluent-kafka: made of its messages)": {
        "barnabas": ours_table,
        "confluent-kafka": confluent_table,
        "barnabas.aio": run_on_uvloop(_asyncio_table),
    },
}
