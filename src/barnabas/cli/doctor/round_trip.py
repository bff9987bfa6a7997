"""Sends a record to each broker and reads it back, on a topic of its own or on a given one.

The topic of its own has a partition on each broker, whose clock stamps the records: that is how the
clocks are compared. It is deleted at the end.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from barnabas.admin.topics import NewTopic, create_topics, delete_topics, describe_topics
from barnabas.aio.consumer import AIOKafkaConsumer
from barnabas.aio.producer import AIOKafkaProducer
from barnabas.cli.doctor.connecting import Clock, RoundTrip
from barnabas.cli.doctor.finding import NotChecked
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.metadata import TopicView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import TopicPartition

PREFIX = "barnabas-doctor-"
LOG_APPEND_TIME = 1
SAMPLES = 4
OPTIONS = {
    "message.timestamp.type": "LogAppendTime",
    "min.insync.replicas": "1",
    "retention.ms": "3600000",
}
SETTLED_S = 10.0
"""How long a new topic may take until all its partitions have leaders."""

Outcome = RoundTrip | Clock | NotChecked


async def round_trips(
    client: ClusterClient,
    options: Mapping[str, Any],
    given: str | None,
    timeout_s: float,
) -> AsyncIterator[Outcome]:
    """Yield what comes of a record for each broker that leads a partition of the topic."""
    topic = given or PREFIX + random.randbytes(4).hex()
    async with AsyncExitStack() as stack:
        if given is None:
            refused = await _create(client, topic)
            if refused is not None:
                yield refused
                return
            stack.push_async_callback(_delete, client, topic)
        try:
            view = await _settled(client, topic)
        except BarnabasError as failure:
            step = _step(failure) or "name a topic that exists: --topic TOPIC"
            yield _not_checked(str(failure), step)
            return
        chosen = {
            partition.leader_id: TopicPartition(topic, partition.index)
            for partition in reversed(view.partitions.values())
            if partition.leader_id >= 0
        }
        if not chosen:
            yield _not_checked(f"topic {topic} has no leader", f"ask: barnabas why topic {topic}")
        for broker, partition in sorted(chosen.items()):
            try:
                async with asyncio.timeout(timeout_s):
                    for outcome in await _one(options, broker, partition):
                        yield outcome
            except (BarnabasError, TimeoutError) as failure:
                why = str(failure) or f"no response within {timeout_s:g} s"
                yield RoundTrip(broker, str(partition), failure=why, step=_step(failure))


async def _create(client: ClusterClient, topic: str) -> NotChecked | None:
    brokers = (await client.refresh()).brokers
    assignment = {index: [broker] for index, broker in enumerate(sorted(brokers))}
    new = NewTopic(topic, replica_assignments=assignment, topic_configs=OPTIONS)
    refused: BarnabasError | None
    try:
        [created] = await create_topics(client, [new])
        refused = created.error
    except BarnabasError as failure:
        refused = failure
    if refused is None:
        return None
    return _not_checked(
        f"no temporary topic can be created ({refused})",
        "name a topic that may be written and read: --topic TOPIC",
    )


async def _delete(client: ClusterClient, topic: str) -> None:
    await delete_topics(client, [topic])


async def _settled(client: ClusterClient, topic: str) -> TopicView:
    """Wait until all partitions have leaders, or for as long as that may take."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + SETTLED_S
    while True:
        [view] = await describe_topics(client, [topic])
        led = [each.leader_id >= 0 for each in view.partitions.values()]
        if loop.time() > end_s or (led and all(led)):
            if view.error is not ErrorCode.NONE:
                raise RequestError(view.error, f"topic {topic}: {view.error.meaning}")
            return view
        if view.error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise RequestError(view.error, f"topic {topic}: {view.error.meaning}")
        await asyncio.sleep(0.05)


async def _one(
    options: Mapping[str, Any], broker: int, partition: TopicPartition
) -> Iterable[Outcome]:
    samples = []
    async with AIOKafkaProducer(**options, enable_idempotence=False) as producer:
        # The first one opens the connections: the others are faster, and the fastest one counts.
        for _ in range(SAMPLES):
            value = random.randbytes(32)
            before_ms, began_s = time.time() * 1000, time.perf_counter()
            sent = await producer.send_and_wait(
                partition.topic, value, partition=partition.partition
            )
            samples.append(((time.perf_counter() - began_s) * 1000, before_ms, sent))
    sent_ms, before_ms, fastest = min(samples)
    began_s = time.perf_counter()
    async with AIOKafkaConsumer(**options, enable_auto_commit=False) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, sent.offset)
        record = await consumer.getone()
    read_ms = (time.perf_counter() - began_s) * 1000
    found: list[Outcome] = [
        RoundTrip(broker, str(partition), sent_ms, read_ms, record.value == value)
    ]
    if fastest.timestamp_type == LOG_APPEND_TIME and fastest.timestamp is not None:
        middle_ms = before_ms + sent_ms / 2
        found.append(Clock(broker, fastest.timestamp - middle_ms, sent_ms / 2 + 1))
    return found


def _not_checked(reason: str, step: str) -> NotChecked:
    return NotChecked("record", "", reason, step)


def _step(failure: BaseException) -> str | None:
    code = getattr(failure, "code", None)
    if code in (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
        return "allow READ and WRITE on the topic: barnabas acls add"
    return None
