"""Reads records with one of the clients, as a program of its users would: in lists.

Without a group, clients read the partitions of their plan; with one, what the group assigns to
them. Imports are inside the functions: a process loads the client that it measures, and no other.
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

LIST_MAX = 500
"""The maximum number of records in a list: max.poll.records of Kafka."""

POLL_S = 0.2
JOIN_S = 30.0
"""How long a member waits for partitions; one too many for its group never gets any."""
ANSWER_S = 30.0

Batch = list[Any]
"""Records of the client's own class."""


class Consumer(Protocol):
    """What reading needs of a client."""

    def is_assigned(self) -> bool: ...
    def poll(self, timeout_s: float, most: int = LIST_MAX) -> Batch: ...
    def measured(self, batch: Batch) -> Iterator[tuple[bytes, int]]: ...
    def size(self, batch: Batch) -> int: ...
    def close(self) -> None: ...


def consume(plan: Plan, meter: Meter, stop: threading.Event) -> None:
    """Read until there are enough records, the time is up, or none has arrived for a while.

    The clock starts when the client has partitions and positions, and stops when the last records
    have arrived. At the end of the topic, latencies count from timestamps.
    """
    consumer = open_consumer(plan)
    try:
        read(consumer, plan, meter, stop)
    finally:
        consumer.close()


def read(consumer: Consumer, plan: Plan, meter: Meter, stop: threading.Event) -> None:
    """Do what the plan says with a consumer."""
    clock = time.perf_counter
    batch: Batch = []
    if plan.group is not None:
        meter.wait_for_others()  # not later: members must poll while the others join
        join_end_s = clock() + JOIN_S
        while not (batch or consumer.is_assigned() or stop.is_set() or clock() >= join_end_s):
            batch = consumer.poll(POLL_S, _wanted(plan, meter))
    meter.begin()
    last_s = clock()
    end_s = None if plan.duration_s is None else last_s + plan.duration_s
    while not stop.is_set() and (wanted := _wanted(plan, meter)):
        batch = batch or consumer.poll(POLL_S, wanted)
        now_s = clock()
        if batch:
            last_s = now_s
            if plan.from_end:
                now_ms = time.time() * 1000
                for _, timestamp_ms in consumer.measured(batch):
                    meter.latencies.add(int((now_ms - timestamp_ms) * 1000))
            meter.read(len(batch), consumer.size(batch))
            batch = []
        elif now_s - last_s >= plan.idle_s:
            break
        if end_s is not None and now_s >= end_s:
            break
    meter.stop_at_last()


def _wanted(plan: Plan, meter: Meter) -> int:
    """Return how many records the next list may have; 0 if there are enough."""
    return LIST_MAX if plan.records is None else min(LIST_MAX, plan.records - meter.records)


def open_consumer(plan: Plan) -> Consumer:
    """Return the consumer of a plan, which is at its first position."""
    kinds: dict[str, Callable[[Plan], Consumer]] = {
        CONFLUENT: ConfluentConsumer,
        KAFKA_PYTHON: KafkaPythonConsumer,
        AIOKAFKA: AioKafkaConsumer,
    }
    return kinds.get(plan.client, BarnabasConsumer)(plan)


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
        read = plan.partitions or sorted(self._client.partitions_for_topic(plan.topic) or ())
        assigned = [partition(plan.topic, each) for each in read]
        self._client.assign(assigned)
        if plan.from_end:
            self._client.seek_to_end(*assigned)
        else:
            self._client.seek_to_beginning(*assigned)
        for each in assigned:
            self._client.position(each)

    def is_assigned(self) -> bool:
        return bool(self._client.assignment())

    def poll(self, timeout_s: float, most: int = LIST_MAX) -> Batch:
        found = self._client.poll(timeout_ms=int(timeout_s * 1000), max_records=most)
        return [record for records in found.values() for record in records]

    def measured(self, batch: Batch) -> Iterator[tuple[bytes, int]]:
        return ((record.value, record.timestamp) for record in batch)

    def size(self, batch: Batch) -> int:
        return _size(batch)

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
        from confluent_kafka import Consumer as Client
        from confluent_kafka import TopicPartition

        # It has no consumer without a group; nothing is committed.
        options = {"group.id": "barnabas-perf", "enable.auto.commit": "false", **plan.options}
        self._client = Client(options)
        if plan.group is not None:
            self._client.subscribe([plan.topic])
            return
        assigned = []
        for each in plan.partitions:
            # Its own OFFSET_END is the end as of some time after this.
            bounds = self._client.get_watermark_offsets(
                TopicPartition(plan.topic, each), timeout=ANSWER_S
            )
            assigned.append(TopicPartition(plan.topic, each, bounds[plan.from_end]))
        self._client.assign(assigned)

    def is_assigned(self) -> bool:
        return bool(self._client.assignment())

    def poll(self, timeout_s: float, most: int = LIST_MAX) -> Batch:
        # To wait for the first one and take what is there: `consume` waits until it has them all.
        first = self._client.poll(timeout_s)
        if first is None:
            return []
        batch = [first, *self._client.consume(most - 1, 0)] if most > 1 else [first]
        return [each for each in batch if _is_record(each)]

    def measured(self, batch: Batch) -> Iterator[tuple[bytes, int]]:
        return ((message.value(), message.timestamp()[1]) for message in batch)

    def size(self, batch: Batch) -> int:
        return sum(len(message.value() or b"") + len(message.key() or b"") for message in batch)

    def close(self) -> None:
        self._client.close()


def _is_record(message: Any) -> bool:
    """Return whether it is one; raise if it is an error that the client does not retry."""
    from confluent_kafka import KafkaException

    error = message.error()
    if error is not None and not error.retriable():
        raise KafkaException(error)
    return error is None


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
        assigned = [TopicPartition(plan.topic, each) for each in plan.partitions]
        client.assign(assigned)
        if plan.from_end:
            await client.seek_to_end(*assigned)
        else:
            await client.seek_to_beginning(*assigned)
        return client

    def run(self, work: Any) -> Any:
        """Run the loop until the work is done."""
        return self._loop.run_until_complete(work)

    def is_assigned(self) -> bool:
        return bool(self._client.assignment())

    def poll(self, timeout_s: float, most: int = LIST_MAX) -> Batch:
        found = self.run(self._client.getmany(timeout_ms=int(timeout_s * 1000), max_records=most))
        return [record for records in found.values() for record in records]

    def measured(self, batch: Batch) -> Iterator[tuple[bytes, int]]:
        return ((record.value, record.timestamp) for record in batch)

    def size(self, batch: Batch) -> int:
        return _size(batch)

    def close(self) -> None:
        self.run(self._client.stop())
        self._loop.close()


def _size(batch: Iterable[Any]) -> int:
    return sum(len(record.value or b"") + len(record.key or b"") for record in batch)
