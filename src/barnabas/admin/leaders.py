"""Requests to the leaders of partitions, with retries after transient failures.

The pattern behind every admin call about partitions: group them under their leaders, send one
request to each, keep what succeeded or failed for good, and repeat for the rest with fresh
metadata. A topic that is missing in metadata three times does not exist: the first time it may be
only unknown to a broker that lags behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from barnabas.admin.failures import coded, failure
from barnabas.admin.settling import is_passing, settle
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import TopicPartition

Answer = TypeVar("Answer")

Ask = Callable[
    [int, list[TopicPartition]], Awaitable[Mapping[TopicPartition, Answer | RequestError]]
]
"""Sends one request about some partitions to their leader, and returns an outcome for each."""

DENIALS_MAX = 3


async def ask_leaders(
    client: ClusterClient,
    partitions: Iterable[TopicPartition],
    ask: Ask[Answer],
    *,
    timeout_ms: float | None = None,
) -> dict[TopicPartition, Answer | RequestError]:
    """Return a result, or a failure that is final or the last one, for every partition."""
    wanted = list(dict.fromkeys(partitions))
    topics = list(dict.fromkeys(partition.topic for partition in wanted))
    denials: dict[TopicPartition, int] = {}

    async def one(
        leader: int, group: list[TopicPartition]
    ) -> Mapping[TopicPartition, Answer | RequestError]:
        try:
            return await ask(leader, group)
        except BarnabasError as broken:
            return dict.fromkeys(group, coded(broken))

    async def attempt(
        missing: list[TopicPartition],
    ) -> Mapping[TopicPartition, Answer | RequestError]:
        led, leaderless = client.cluster.by_leader(missing)
        outcomes: dict[TopicPartition, Answer | RequestError] = {}
        for partition in leaderless:
            outcomes[partition] = _without_leader(client, partition)
            denials[partition] = denials.get(partition, 0) + 1
        for answers in await asyncio.gather(*(one(*each) for each in led.items())):
            outcomes |= answers
        return outcomes

    def passing(partition: TopicPartition, failed: RequestError) -> bool:
        if partition in denials and _is_unknown(failed):
            return denials[partition] < DENIALS_MAX
        return is_passing(partition, failed)

    if any(client.cluster.leader(partition) is None for partition in wanted):
        await client.retrying(lambda: client.refresh(topics), timeout_ms=timeout_ms)
    return await settle(
        client, wanted, attempt, passing=passing, topics=topics, timeout_ms=timeout_ms
    )


def _without_leader(client: ClusterClient, partition: TopicPartition) -> RequestError:
    """Return why there is no broker to ask about a partition."""
    topic = client.cluster.topics.get(partition.topic)
    if topic is not None and topic.error not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
        return failure(topic.error, partition)
    if topic is not None and topic.partitions and partition.partition not in topic.partitions:
        there = f"topic {topic.name!r} has no partition {partition.partition}"
        return failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partition, there)
    return failure(ErrorCode.LEADER_NOT_AVAILABLE, partition)


def _is_unknown(failed: RequestError) -> bool:
    return failed.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def failure_of(partition: TopicPartition, error_code: int, message: str | None) -> RequestError:
    """Return the failure of one partition, named."""
    return failure(error_code, partition, message)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions by topic, as in requests."""
    grouped: dict[str, list[int]] = {}
    for topic, partition in partitions:
        grouped.setdefault(topic, []).append(partition)
    return grouped
