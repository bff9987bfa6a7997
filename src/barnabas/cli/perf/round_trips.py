"""Sends records and reads them back with one of the clients, in one process with one clock.

Without a throughput there is one record at a time: it is sent, acknowledged and read before the
next one. With a throughput records are sent when they are due, however long the others take, and
their latencies count from then.
"""

from __future__ import annotations

import asyncio
import os
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from barnabas.cli.perf.client_options import in_snake_case, producers_and_consumers
from barnabas.cli.perf.consumers import AioKafkaConsumer, Consumer, open_consumer
from barnabas.cli.perf.meter import Counter
from barnabas.cli.perf.pacing import WAIT_S, Pace
from barnabas.cli.perf.plan import AIOKAFKA, CONFLUENT, KAFKA_PYTHON, Plan
from barnabas.client.errors import KafkaTimeoutError

_MARK = struct.Struct(">8sd")
MARK_SIZE = _MARK.size
"""The first bytes of a record: whose it is, and when its latency began."""

ANSWER_S = 60.0


Failed = Callable[[BaseException], object]


class Sender(Protocol):
    """What a round trip needs of a producer; `send` need not wait."""

    def send(self, payload: bytes, failed: Failed) -> None: ...
    def wait(self) -> None: ...
    def close(self) -> None: ...


def measure_round_trips(plan: Plan, meter: Counter, stop: threading.Event) -> None:
    """Send the records of a plan, and end each latency when the record was read."""
    sending, reading = producers_and_consumers(plan.options)
    consumer = open_consumer(replace(plan, options=reading, from_end=True))
    try:
        sender = _sender(replace(plan, options={"linger.ms": "0", **sending}), consumer)
        try:
            consumer.poll(0.0)
            RoundTrips(plan, meter, sender, consumer).run(stop)
        finally:
            sender.close()
    finally:
        consumer.close()


class RoundTrips:
    """The records that were sent and not yet read; one that is not written ends it all."""

    def __init__(self, plan: Plan, meter: Counter, sender: Sender, consumer: Consumer) -> None:
        self._plan = plan
        self._meter = meter
        self._sender = sender
        self._consumer = consumer
        self._own = os.urandom(8)  # others may use the topic at the same time
        self._padding = bytes(max(plan.record_size - MARK_SIZE, 0))
        self._outstanding = 0
        self._failure: BaseException | None = None

    def run(self, stop: threading.Event) -> None:
        """Send until the plan ends, then read what is outstanding."""
        clock = time.perf_counter
        self._meter.begin()
        pace = Pace(self._plan, clock())
        while not stop.is_set():
            due_s = pace.next_due(clock())
            if due_s is None:
                break
            while (left_s := due_s - clock()) > 0 and not stop.is_set():
                self._read(min(left_s, WAIT_S))
            started_s = pace.counted_from(due_s, clock())
            mark = _MARK.pack(self._own, started_s)
            self._sender.send(mark + self._padding, self._failed)
            self._outstanding += 1
            if self._plan.throughput is None:
                self._sender.wait()
                self._read_all(stop)
        self._sender.wait()
        self._read_all(stop)
        self._meter.end()

    def _failed(self, failure: BaseException) -> None:
        self._failure = failure

    def _read_all(self, stop: threading.Event) -> None:
        end_s = time.perf_counter() + ANSWER_S
        while self._outstanding and not stop.is_set():
            left_s = end_s - time.perf_counter()
            if left_s <= 0:
                raise KafkaTimeoutError(
                    f"{self._outstanding} records were written, but not read within {ANSWER_S:g} s"
                )
            self._read(min(left_s, WAIT_S))

    def _read(self, timeout_s: float) -> None:
        if self._failure is not None:
            raise self._failure
        batch = self._consumer.poll(timeout_s)
        for value, _ in self._consumer.measured(batch):
            if value is None or len(value) < MARK_SIZE:
                continue
            own, started_s = _MARK.unpack_from(value)
            if own == self._own:
                self._outstanding -= 1
                self._meter.succeeded(started_s, len(value))


def _sender(plan: Plan, consumer: Consumer) -> Sender:
    if plan.client == CONFLUENT:
        return ConfluentSender(plan)
    if plan.client == AIOKAFKA:
        assert isinstance(consumer, AioKafkaConsumer)
        return AioKafkaSender(plan, consumer)
    return BlockingSender(plan)


class BlockingSender:
    """Ours, or kafka-python's."""

    def __init__(self, plan: Plan) -> None:
        self._topic = plan.topic
        options: dict[str, Any]
        if plan.client == KAFKA_PYTHON:
            from kafka import KafkaProducer

            options = in_snake_case(plan.client, plan.options)
        else:
            from barnabas import KafkaProducer

            options = dict(plan.options)
        self._client = KafkaProducer(**options)
        self._client.partitions_for(plan.topic)
        self._last: Any = None

    def send(self, payload: bytes, failed: Failed) -> None:
        self._last = self._client.send(self._topic, payload)
        self._last.add_errback(failed)

    def wait(self) -> None:
        if self._last is not None:
            self._last.get(ANSWER_S)

    def close(self) -> None:
        self._client.close()


class ConfluentSender:
    """confluent-kafka's."""

    def __init__(self, plan: Plan) -> None:
        from confluent_kafka import Producer

        self._topic = plan.topic
        self._client = Producer(dict(plan.options))
        self._client.list_topics(plan.topic, timeout=30)

    def send(self, payload: bytes, failed: Failed) -> None:
        from confluent_kafka import KafkaException

        def ended(error: Any, _: object) -> None:
            if error is not None:
                failed(KafkaException(error))

        self._client.produce(self._topic, payload, on_delivery=ended)
        self._client.poll(0)

    def wait(self) -> None:
        self._client.flush(ANSWER_S)

    def close(self) -> None:
        self._client.flush(ANSWER_S)


class AioKafkaSender:
    """aiokafka's, on the loop of its consumer."""

    def __init__(self, plan: Plan, consumer: AioKafkaConsumer) -> None:
        self._topic = plan.topic
        self._run = consumer.run
        self._client = self._run(self._open(plan))
        self._last: asyncio.Future[Any] | None = None

    async def _open(self, plan: Plan) -> Any:
        from aiokafka import AIOKafkaProducer

        client = AIOKafkaProducer(**in_snake_case(plan.client, plan.options))
        await client.start()
        return client

    def send(self, payload: bytes, failed: Failed) -> None:
        def ended(sent: asyncio.Future[Any]) -> None:
            if (failure := sent.exception()) is not None:
                failed(failure)

        self._last = self._run(self._client.send(self._topic, payload))
        self._last.add_done_callback(ended)

    def wait(self) -> None:
        if self._last is not None:
            self._run(asyncio.wait_for(asyncio.shield(self._last), ANSWER_S))

    def close(self) -> None:
        self._run(self._client.stop())
