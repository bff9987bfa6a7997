"""Reads records with one of the clients, as a program of its users would: in lists.

Without a group, the partitions of the topic are divided among the clients of a kind, which assign
them; with one, its members are. Imports are inside the functions: a process loads the client that
it measures, and no other.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from barnabas.cli.perf.client_options import in_snake_case
from barnabas.cli.perf.meter import Meter
from barnabas.cli.perf.plan import AIOKAFKA, CONFLUENT, KAFKA_PYTHON, Plan
from barnabas.model.errors import InvalidValueError

LIST_MAX = 500
"""The maximum number of records in a list: max.poll.records of Kafka."""

POLL_S = 0.2

Batch = list[Any]
"""Records of the client's own class."""


class Consumer(Protocol):
    """What reading needs of a client."""

    def poll(self, timeout_s: float) -> Batch: ...
    def measured(self, batch: Batch) -> Iterator[tuple[bytes, int]]: ...
    def size(self, batch: Batch) -> int: ...
    def close(self) -> None: ...


def consume(plan: Plan, meter: Meter, stop: threading.Event) -> None:
    """Read until there are enough records, the time is up, or none has arrived for a while.

    The clock starts when the positions are known, and stops when the last records have arrived; a
    group's join is part of the time. At the end of the topic, latencies count from timestamps.
    """
    consumer = open_consumer(plan)
    clock = time.perf_counter
    try:
        meter.begin()
        last_s = clock()
        end_s = None if plan.duration_s is None else last_s + plan.duration_s
        while not stop.is_set():
            batch = consumer.poll(POLL_S)
            now_s = clock()
            if batch:
                last_s = now_s
                if plan.from_end:
                    now_ms = time.time() * 1000
                    for _, timestamp_ms in consumer.measured(batch):
                        meter.latencies.add(int((now_ms - timestamp_ms) * 1000))
                meter.read(len(batch), consumer.size(batch))
                if plan.records is not None and meter.records >= plan.records:
                    break
            elif now_s - last_s >= plan.idle_s:
                break
            if end_s is not None and now_s >= end_s:
                break
        meter.stop_at_last()
    finally:
        consumer.close()


def open_consumer(plan: Plan) -> Consumer:
    """Return the consumer of a plan, which is at its first position."""
    kinds: dict[str, Callable[[Plan], Consumer]] = {
        CONFLUENT: ConfluentConsumer,
        KAFKA_PYTHON: KafkaPythonConsumer,
        AIOKAFKA: AioKafkaConsumer,
    }
    return kinds.get(plan.client, BarnabasConsumer)(plan)


def own_partitions(plan: Plan, partitions: Iterable[int]) -> list[int]:
    """Return the partitions that this client reads; raise if there are none for it."""
    every = sorted(partitions)
    own = [each for index, each in enumerate(every) if index % plan.clients == plan.number]
    if not own:
        raise InvalidValueError(
            f"topic {plan.topic} has {len(every)} partitions for {plan.clients} clients: "
            "set --clients to no more than that, or create partitions"
        )
    return own


class BarnabasConsumer:
    """Ours."""

    def __init__(self, plan: Plan) -> None:
        from barnabas import KafkaConsumer, TopicPartition

        self._open(plan, KafkaConsumer, TopicPartition, dict(plan.options))

    def _open(self, plan: Plan, kind: Any, partition: Any, options: dict[str, Any]) -> None:
        self._client = kind(**options)
        if plan.group is not None:
            self._client.subscribe([plan.topic])
            return
        own = own_partitions(plan, self._client.partitions_for_topic(plan.topic) or ())
        assigned = [partition(plan.topic, each) for each in own]
        self._client.assign(assigned)
        if plan.from_end:
            self._client.seek_to_end(*assigned)
        else:
            self._client.seek_to_beginning(*assigned)
        for each in assigned:
            self._client.position(each)

    def poll(self, timeout_s: float) -> Batch:
        found = self._client.poll(timeout_ms=int(timeout_s * 1000), max_records=LIST_MAX)
        return [record for records in found.values() for record in records]

    def measured(self, batch: Batch) -> Iterator[tuple[bytes, int]]:
        return ((record.value, record.timestamp) for record in batch)

    def size(self, batch: Batch) -> int:
        return sum(len(record.value or b"") + len(record.key or b"") for record in batch)

    def close(self) -> None:
        self._client.close()


class KafkaPythonConsumer(BarnabasConsumer):
    """kafka-python's, whose methods are the same."""

    def __init__(self, plan: Plan) -> None:
        from kafka import KafkaConsumer, TopicPartition

        options = in_snake_case(plan.client, plan.options)
        self._open(plan, KafkaConsumer, TopicPartition, options)


class ConfluentConsumer:
    """confluent-kafka's."""

    def __init__(self, plan: Plan) -> None:
        from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition
        from confluent_kafka import Consumer as Client

        # It has no consumer without a group; nothing is committed.
        options = {"group.id": "barnabas-perf", "enable.auto.commit": "false", **plan.options}
        self._client = Client(options)
        if plan.group is not None:
            self._client.subscribe([plan.topic])
            return
        known = self._client.list_topics(plan.topic, timeout=30).topics[plan.topic].partitions
        start = OFFSET_END if plan.from_end else OFFSET_BEGINNING
        own = own_partitions(plan, known)
        self._client.assign([TopicPartition(plan.topic, each, start) for each in own])

    def poll(self, timeout_s: float) -> Batch:
        return [each for each in self._client.consume(LIST_MAX, timeout_s) if not each.error()]

    def measured(self, batch: Batch) -> Iterator[tuple[bytes, int]]:
        return ((message.value(), message.timestamp()[1]) for message in batch)

    def size(self, batch: Batch) -> int:
        return sum(len(message.value() or b"") + len(message.key() or b"") for message in batch)

    def close(self) -> None:
        self._client.close()


class AioKafkaConsumer:
    """aiokafka's, on a loop that runs while it is asked."""

    def __init__(self, plan: Plan) -> None:
        self._loop = asyncio.new_event_loop()
        self._client = self.run(self._open(plan))

    async def _open(self, plan: Plan) -> Any:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        client = AIOKafkaConsumer(**in_snake_case(plan.client, plan.options))
        await client.start()
        if plan.group is not None:
            client.subscribe([plan.topic])
            return client
        await client.topics()
        own = own_partitions(plan, client.partitions_for_topic(plan.topic) or ())
        assigned = [TopicPartition(plan.topic, each) for each in own]
        client.assign(assigned)
        if plan.from_end:
            await client.seek_to_end(*assigned)
        else:
            await client.seek_to_beginning(*assigned)
        return client

    def run(self, work: Any) -> Any:
        """Run the loop until the work is done."""
        return self._loop.run_until_complete(work)

    def poll(self, timeout_s: float) -> Batch:
        found = self.run(
            self._client.getmany(timeout_ms=int(timeout_s * 1000), max_records=LIST_MAX)
        )
        return [record for records in found.values() for record in records]

    def measured(self, batch: Batch) -> Iterator[tuple[bytes, int]]:
        return ((record.value, record.timestamp) for record in batch)

    def size(self, batch: Batch) -> int:
        return sum(len(record.value or b"") + len(record.key or b"") for record in batch)

    def close(self) -> None:
        self.run(self._client.stop())
        self._loop.close()
