"""Ways to send, by scenario and client: each a function that the child process of a run calls.

A way connects, sends a first record so that the topic is known, and hands what is to be timed to
`Meter`. Imports are inside the ways: a process loads the client that it measures and no other.
Options are each client's own but for linger.ms=5, idempotence with acks=all, and a queue of
confluent-kafka's that holds all records: it raises where the others wait. Values have 100 bytes,
keys 10.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bench.client_meter import Meter, run_on_uvloop

VALUE = b"v" * 100
KEY = b"k" * 10
ROWS = 1000
TABLE_ROWS = 10_000

Way = Callable[[str, str, int], dict[str, float]]

# Barnabas.


def _ours(bootstrap: str, topic: str, **options: Any) -> Any:
    from barnabas import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, **{"linger_ms": 5, **options})
    producer.send(topic, VALUE).get(30)
    return producer


def ours_forget(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    with _ours(bootstrap, topic) as producer, Meter(count) as meter:
        send = producer.send
        for _ in range(count):
            send(topic, VALUE, KEY)
        producer.flush()
    return meter.result()


def ours_futures(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    with _ours(bootstrap, topic) as producer, Meter(count) as meter:
        futures = [producer.send(topic, VALUE, KEY) for _ in range(count)]
        producer.flush()
        assert all(future.succeeded() for future in futures)
    return meter.result()


def ours_callbacks(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    done = 0

    def delivered(_: object) -> None:
        nonlocal done
        done += 1

    with _ours(bootstrap, topic) as producer, Meter(count) as meter:
        for _ in range(count):
            producer.send(topic, VALUE, KEY).add_callback(delivered)
        producer.flush()
    assert done == count
    return meter.result()


def ours_many(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    rows = [(KEY, VALUE)] * ROWS
    with _ours(bootstrap, topic) as producer, Meter(count) as meter:
        for _ in range(count // ROWS):
            producer.send_many(topic, rows)
        producer.flush()
    return meter.result()


def ours_table(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    table = _table()
    with _ours(bootstrap, topic) as producer, Meter(count) as meter:
        for _ in range(count // TABLE_ROWS):
            producer.send_arrow(topic, table)
        producer.flush()
    return meter.result()


def ours_wait(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    with _ours(bootstrap, topic, linger_ms=0) as producer, Meter(count) as meter:
        for _ in range(count):
            began = time.perf_counter()
            producer.send(topic, VALUE, KEY).get(30)
            meter.took(began)
    return meter.result()


# confluent-kafka.


def _confluent(bootstrap: str, topic: str, **options: Any) -> Any:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 5,
            "queue.buffering.max.messages": 10_000_000,
            "queue.buffering.max.kbytes": 2_000_000,
            "enable.idempotence": True,
            **options,
        }
    )
    producer.produce(topic, VALUE)
    assert producer.flush(30) == 0
    return producer


def confluent_forget(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    producer = _confluent(bootstrap, topic)
    with Meter(count) as meter:
        produce = producer.produce
        for _ in range(count):
            produce(topic, VALUE, KEY)
        assert producer.flush(120) == 0
    return meter.result()


def confluent_callbacks(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    done = 0

    def delivered(failure: object, _: object) -> None:
        nonlocal done
        assert failure is None
        done += 1

    producer = _confluent(bootstrap, topic)
    with Meter(count) as meter:
        for number in range(count):
            producer.produce(topic, VALUE, KEY, on_delivery=delivered)
            if number % 1000 == 0:
                producer.poll(0)
        assert producer.flush(120) == 0
    assert done == count
    return meter.result()


def confluent_many(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    producer = _confluent(bootstrap, topic)
    rows = [{"key": KEY, "value": VALUE} for _ in range(ROWS)]
    with Meter(count) as meter:
        for _ in range(count // ROWS):
            producer.produce_batch(topic, rows)
        assert producer.flush(120) == 0
    return meter.result()


def confluent_table(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    table = _table()
    producer = _confluent(bootstrap, topic)
    with Meter(count) as meter:
        for _ in range(count // TABLE_ROWS):
            producer.produce_batch(topic, table.to_pylist())
        assert producer.flush(120) == 0
    return meter.result()


def confluent_wait(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    producer = _confluent(bootstrap, topic, **{"linger.ms": 0})
    with Meter(count) as meter:
        for _ in range(count):
            began = time.perf_counter()
            producer.produce(topic, VALUE, KEY)
            assert producer.flush(30) == 0
            meter.took(began)
    return meter.result()


# kafka-python.


def _kafka_python(bootstrap: str, topic: str, **options: Any) -> Any:
    from kafka import KafkaProducer  # type: ignore[import-untyped]

    producer = KafkaProducer(bootstrap_servers=bootstrap, **{"linger_ms": 5, **options})
    producer.send(topic, VALUE).get(30)
    return producer


def kafka_python_forget(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    with _kafka_python(bootstrap, topic) as producer, Meter(count) as meter:
        for _ in range(count):
            producer.send(topic, VALUE, KEY)
        producer.flush()
    return meter.result()


def kafka_python_futures(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    with _kafka_python(bootstrap, topic) as producer, Meter(count) as meter:
        futures = [producer.send(topic, VALUE, KEY) for _ in range(count)]
        producer.flush()
        assert all(future.succeeded() for future in futures)
    return meter.result()


def kafka_python_callbacks(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    done = 0

    def delivered(_: object) -> None:
        nonlocal done
        done += 1

    with _kafka_python(bootstrap, topic) as producer, Meter(count) as meter:
        for _ in range(count):
            producer.send(topic, VALUE, KEY).add_callback(delivered)
        producer.flush()
    assert done == count
    return meter.result()


def kafka_python_wait(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    with _kafka_python(bootstrap, topic, linger_ms=0) as producer, Meter(count) as meter:
        for _ in range(count):
            began = time.perf_counter()
            producer.send(topic, VALUE, KEY).get(30)
            meter.took(began)
    return meter.result()


# asyncio: the same program for ours and for aiokafka.


def _asyncio_producer(client: str, bootstrap: str, **options: Any) -> Any:
    options = {"linger_ms": 5, **options}
    if client == "barnabas.aio":
        from barnabas.aio import AIOKafkaProducer

        return AIOKafkaProducer(bootstrap_servers=bootstrap, **options)
    from aiokafka import AIOKafkaProducer as Theirs  # type: ignore[import-untyped]

    return Theirs(bootstrap_servers=bootstrap, enable_idempotence=True, **options)


def _asyncio_forget(client: str) -> Way:
    async def program(bootstrap: str, topic: str, count: int) -> dict[str, float]:
        async with _asyncio_producer(client, bootstrap) as producer:
            await producer.send_and_wait(topic, VALUE)
            with Meter(count) as meter:
                for _ in range(count):
                    await producer.send(topic, VALUE, KEY)
                await producer.flush()
        return meter.result()

    return run_on_uvloop(program)


def _asyncio_futures(client: str) -> Way:
    async def program(bootstrap: str, topic: str, count: int) -> dict[str, float]:
        async with _asyncio_producer(client, bootstrap) as producer:
            await producer.send_and_wait(topic, VALUE)
            with Meter(count) as meter:
                futures = [await producer.send(topic, VALUE, KEY) for _ in range(count)]
                for future in futures:
                    await future
        return meter.result()

    return run_on_uvloop(program)


def _asyncio_wait(client: str) -> Way:
    async def program(bootstrap: str, topic: str, count: int) -> dict[str, float]:
        async with _asyncio_producer(client, bootstrap, linger_ms=0) as producer:
            await producer.send_and_wait(topic, VALUE)
            with Meter(count) as meter:
                for _ in range(count):
                    began = time.perf_counter()
                    await producer.send_and_wait(topic, VALUE, KEY)
                    meter.took(began)
        return meter.result()

    return run_on_uvloop(program)


async def _asyncio_many(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    rows = [(KEY, VALUE)] * ROWS
    async with _asyncio_producer("barnabas.aio", bootstrap) as producer:
        await producer.send_and_wait(topic, VALUE)
        with Meter(count) as meter:
            for _ in range(count // ROWS):
                await producer.send_many(topic, rows)
            await producer.flush()
    return meter.result()


async def _asyncio_table(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    table = _table()
    async with _asyncio_producer("barnabas.aio", bootstrap) as producer:
        await producer.send_and_wait(topic, VALUE)
        with Meter(count) as meter:
            for _ in range(count // TABLE_ROWS):
                await producer.send_arrow(topic, table)
            await producer.flush()
    return meter.result()


def _table() -> Any:
    import pyarrow as pa
    import pyarrow.compute  # loading it is no part of what is measured

    return pa.table({"key": [KEY] * TABLE_ROWS, "value": [VALUE] * TABLE_ROWS})


FORGET = "send, fire and forget"
FUTURES = "send, a future each (confluent-kafka: a callback each)"
CALLBACKS = "send, a callback each"
MANY = f"send {ROWS:,} rows a call"
TABLE = f"send Arrow tables of {TABLE_ROWS:,} rows (confluent-kafka: their rows)"
WAIT = "send and wait, one at a time"

WAYS: dict[str, dict[str, Way]] = {
    FORGET: {
        "barnabas": ours_forget,
        "confluent-kafka": confluent_forget,
        "barnabas.aio": _asyncio_forget("barnabas.aio"),
        "aiokafka": _asyncio_forget("aiokafka"),
        "kafka-python": kafka_python_forget,
    },
    FUTURES: {
        "barnabas": ours_futures,
        "confluent-kafka": confluent_callbacks,
        "barnabas.aio": _asyncio_futures("barnabas.aio"),
        "aiokafka": _asyncio_futures("aiokafka"),
        "kafka-python": kafka_python_futures,
    },
    CALLBACKS: {
        "barnabas": ours_callbacks,
        "confluent-kafka": confluent_callbacks,
        "kafka-python": kafka_python_callbacks,
    },
    MANY: {
        "barnabas": ours_many,
        "confluent-kafka": confluent_many,
        "barnabas.aio": run_on_uvloop(_asyncio_many),
    },
    TABLE: {
        "barnabas": ours_table,
        "confluent-kafka": confluent_table,
        "barnabas.aio": run_on_uvloop(_asyncio_table),
    },
    WAIT: {
        "barnabas": ours_wait,
        "confluent-kafka": confluent_wait,
        "barnabas.aio": _asyncio_wait("barnabas.aio"),
        "aiokafka": _asyncio_wait("aiokafka"),
        "kafka-python": kafka_python_wait,
    },
}
