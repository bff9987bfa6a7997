"""Sends the records of a plan with one of the clients, as a program of its users would.

Each record is sent by itself, with a callback that ends its latency. Imports are inside the
functions: a process loads the client that it measures, and no other.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from barnabas.cli.perf.client_options import in_snake_case
from barnabas.cli.perf.meter import Counter
from barnabas.cli.perf.pacing import WAIT_S, Pace, due_times
from barnabas.cli.perf.payloads import payloads
from barnabas.cli.perf.plan import AIOKAFKA, CONFLUENT, KAFKA_PYTHON, Plan

FLUSH_S = 120.0


class Producer(Protocol):
    """What `send_all` needs of a client that blocks."""

    def send(self, payload: bytes, started_s: float, meter: Counter) -> None: ...
    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def wait(self, seconds: float) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...


def produce(plan: Plan, meter: Counter, stop: threading.Event) -> None:
    """Send the records of a plan, and wait until each is written or has failed."""
    if plan.client == AIOKAFKA:
        asyncio.run(_produce_with_aiokafka(plan, meter, stop))
        return
    kinds: dict[str, Callable[[Plan], Producer]] = {
        CONFLUENT: ConfluentProducer,
        KAFKA_PYTHON: KafkaPythonProducer,
    }
    producer = kinds.get(plan.client, BarnabasProducer)(plan)
    try:
        send_all(producer, plan, meter, stop)
    finally:
        producer.close()


def send_all(producer: Producer, plan: Plan, meter: Counter, stop: threading.Event) -> None:
    """Send all records in time, in transactions if the plan has them."""
    values = payloads(plan)
    transactions = Transactions(plan)
    send = producer.send
    meter.begin()
    for started_s in due_times(plan, stop, producer.wait):
        if transactions.is_due(time.perf_counter()):
            if transactions.is_open:
                producer.commit()
            producer.begin()
            transactions.opened(time.perf_counter())
        send(next(values), started_s, meter)
    if transactions.is_open:
        producer.commit()
    producer.flush()
    meter.end()


class Transactions:
    """When the next transaction of a plan is due."""

    def __init__(self, plan: Plan) -> None:
        self._length_s = None if plan.transaction_ms is None else plan.transaction_ms / 1000
        self._opened_s: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is one to commit."""
        return self._opened_s is not None

    def is_due(self, now_s: float) -> bool:
        """Return whether a transaction is to begin now, in place of the one that is open."""
        if self._length_s is None:
            return False
        return self._opened_s is None or now_s - self._opened_s >= self._length_s

    def opened(self, now_s: float) -> None:
        """Record that a transaction has begun."""
        self._opened_s = now_s


class BarnabasProducer:
    """Ours."""

    def __init__(self, plan: Plan) -> None:
        from barnabas import KafkaProducer

        options: dict[str, Any] = dict(plan.options)
        self._topic = plan.topic
        self.client = KafkaProducer(**options)
        self._send = self.client.send
        self.client.partitions_for(plan.topic)  # finding the topic is not measured
        if plan.transaction_ms is not None:
            self.client.init_transactions()

    def send(self, payload: bytes, started_s: float, meter: Counter) -> None:
        future = self._send(self._topic, payload)
        future.add_callback(meter.succeeded, started_s, len(payload))
        future.add_errback(meter.failed)

    def begin(self) -> None:
        self.client.begin_transaction()

    def commit(self) -> None:
        self.client.commit_transaction()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def flush(self) -> None:
        self.client.flush()

    def close(self) -> None:
        self.client.close(timeout=FLUSH_S)


class KafkaPythonProducer:
    """kafka-python's."""

    def __init__(self, plan: Plan) -> None:
        from kafka import KafkaProducer

        self._topic = plan.topic
        self._client = KafkaProducer(**in_snake_case(plan.client, plan.options))
        self._client.partitions_for(plan.topic)
        if plan.transaction_ms is not None:
            self._client.init_transactions()

    def send(self, payload: bytes, started_s: float, meter: Counter) -> None:
        future = self._client.send(self._topic, payload)
        future.add_callback(meter.succeeded, started_s, len(payload))
        future.add_errback(meter.failed)

    def begin(self) -> None:
        self._client.begin_transaction()

    def commit(self) -> None:
        self._client.commit_transaction()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def flush(self) -> None:
        self._client.flush(FLUSH_S)

    def close(self) -> None:
        self._client.close(FLUSH_S)


class ConfluentProducer:
    """confluent-kafka's."""

    def __init__(self, plan: Plan) -> None:
        from confluent_kafka import Producer as Client

        self._topic = plan.topic
        self._client = Client(dict(plan.options))
        self._client.list_topics(plan.topic, timeout=30)
        if plan.transaction_ms is not None:
            self._client.init_transactions()
        self._unpolled = 0

    def send(self, payload: bytes, started_s: float, meter: Counter) -> None:
        ended = partial(_confluent_ended, meter, started_s, len(payload))
        while True:
            try:
                self._client.produce(self._topic, payload, on_delivery=ended)
                break
            except BufferError:  # the queue is full
                self._client.poll(0.05)
        self._unpolled += 1
        if self._unpolled >= 500:
            self._unpolled = 0
            self._client.poll(0)

    def begin(self) -> None:
        self._client.begin_transaction()

    def commit(self) -> None:
        self._client.commit_transaction()

    def wait(self, seconds: float) -> None:
        self._client.poll(seconds)  # calls back for what was written meanwhile

    def flush(self) -> None:
        self._client.flush(FLUSH_S)

    def close(self) -> None:
        self._client.flush(FLUSH_S)


def _confluent_ended(
    meter: Counter, started_s: float, size: int, failure: object, _: object
) -> None:
    if failure is None:
        meter.succeeded(started_s, size)
    else:
        meter.failed(failure)


async def _produce_with_aiokafka(plan: Plan, meter: Counter, stop: threading.Event) -> None:
    from aiokafka import AIOKafkaProducer

    clock = time.perf_counter
    values = payloads(plan)
    transactions = Transactions(plan)
    async with AIOKafkaProducer(**in_snake_case(plan.client, plan.options)) as producer:
        await producer.partitions_for(plan.topic)
        meter.begin()
        pace = Pace(plan, clock())
        while not stop.is_set():
            now_s = clock()
            due_s = pace.next_due(now_s)
            if due_s is None:
                break
            while due_s > now_s and not stop.is_set():
                await asyncio.sleep(min(due_s - now_s, WAIT_S))
                now_s = clock()
            if transactions.is_due(now_s):
                if transactions.is_open:
                    await producer.commit_transaction()
                await producer.begin_transaction()
                transactions.opened(clock())
            payload = next(values)
            future = await producer.send(plan.topic, payload)
            started_s = pace.counted_from(due_s, now_s)
            future.add_done_callback(partial(_aiokafka_ended, meter, started_s, len(payload)))
        if transactions.is_open:
            await producer.commit_transaction()
        await producer.flush()
        await asyncio.sleep(0)  # the callbacks of the last ones run now
        meter.end()


def _aiokafka_ended(
    meter: Counter, started_s: float, size: int, future: asyncio.Future[Any]
) -> None:
    failure = future.exception()
    if failure is None:
        meter.succeeded(started_s, size)
    else:
        meter.failed(failure)
