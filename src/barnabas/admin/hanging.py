"""Hanging transactions: open on a partition, and unknown to every coordinator.

A leader cannot distinguish such a transaction from a slow one. So those that were idle for longer
than a transaction may last are compared with what the coordinators know: if a coordinator has the
partition in an open transaction of the same producer, the transaction will end by itself.
"""

from __future__ import annotations

from barnabas.admin.topics import describe_topics
from barnabas.admin.transactions import (
    DescribedTransaction,
    OpenTransaction,
    describe_transactions,
    list_transactions,
    open_transactions,
)
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition

OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort")


async def find_hanging(
    client: ClusterClient,
    topic: str | None,
    broker_id: int | None,
    silent_since_ms: int,
) -> list[OpenTransaction]:
    """Return the hanging transactions of one or all topics, on one or all leaders."""
    partitions = await _partitions(client, topic, broker_id)
    silent = [
        opened
        for opened in await open_transactions(client, partitions)
        if opened.last_timestamp_ms <= silent_since_ms
    ]
    if not silent:
        return []
    alive = await _known(client, {opened.producer_id for opened in silent})
    return [opened for opened in silent if (opened.producer_id, opened.partition) not in alive]


async def _partitions(
    client: ClusterClient, topic: str | None, broker_id: int | None
) -> list[TopicPartition]:
    views = await describe_topics(client, None if topic is None else [topic])
    if topic is not None and views[0].error is not ErrorCode.NONE:
        raise RequestError(views[0].error, f"topic {topic!r}: {views[0].error.meaning}")
    return [
        TopicPartition(view.name, index)
        for view in views
        for index, partition in sorted(view.partitions.items())
        if broker_id in (None, partition.leader_id)
    ]


async def _known(client: ClusterClient, producer_ids: set[int]) -> set[tuple[int, TopicPartition]]:
    """Return the producers and partitions of transactions that coordinators will end."""
    listed = await list_transactions(client, OPEN_STATES, sorted(producer_ids))
    described = await describe_transactions(client, [each.transactional_id for each in listed])
    return {
        (state.producer_id, partition)
        for state in described.values()
        if isinstance(state, DescribedTransaction) and state.state in OPEN_STATES
        for partition in state.partitions
    }
