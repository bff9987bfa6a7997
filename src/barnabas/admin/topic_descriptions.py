"""Describe topics in full: by name or id, with what the caller may do; or page by page.

`describe_topics` asks for Metadata and works with every broker. `describe_topic_partitions` asks
for DescribeTopicPartitions (3.7 and later), which also returns the eligible leader replicas, and
splits a long response into pages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.admin.acls import ACLOperation, operations_of
from barnabas.admin.failures import failure_or_none
from barnabas.admin.topics import TopicId, topic_id_of
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.errors import RequestError
from barnabas.model.ids import Uuid, uuid_text
from barnabas.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    TopicRequest,
)
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)

FIRST_VERSION_WITH_IDS = 12
"""Of Metadata; earlier ones have the field and ignore it."""

FIRST_VERSION_WITH_OPERATIONS = 8
FIRST_VERSION_WITHOUT_CREATION = 4


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """One partition; `leader_id` is -1 while it has none, the eligible are None if unknown."""

    index: int
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]
    error: RequestError | None
    eligible_leaders: tuple[int, ...] | None = None
    last_known_eligible: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """One topic, or why it cannot be described; operations are None if not requested or unknown."""

    name: str | None
    topic_id: Uuid
    internal: bool
    partitions: tuple[PartitionDescription, ...]
    authorized_operations: frozenset[ACLOperation] | None
    error: RequestError | None


@dataclass(frozen=True, slots=True)
class PageStart:
    """Where the next page begins."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class TopicPage:
    """Some topics with some of their partitions, and the start of the next page, if any."""

    topics: tuple[TopicDescription, ...]
    next: PageStart | None


async def list_topics(client: ClusterClient, *, internal: bool = True) -> list[str]:
    """Return the names of all topics, sorted.

    names = await list_topics(client, internal=False)
    """
    found = await describe_topics(client)
    return sorted(topic.name for topic in found if topic.name and (internal or not topic.internal))


async def describe_topics(
    client: ClusterClient,
    topics: Iterable[str | TopicId] | None = None,
    *,
    authorized_operations: bool = False,
    timeout_ms: float | None = None,
) -> list[TopicDescription]:
    """Return topics by name or id, or all of them; each has its own error.

    [orders] = await describe_topics(client, ["orders"])
    """
    wanted = None if topics is None else list(topics)

    async def attempt() -> MetadataResponse:
        connection = await client.connection()
        by_id = any(not isinstance(topic, str) for topic in wanted or ())
        version = connection.version_of(
            MetadataRequest, at_least=FIRST_VERSION_WITH_IDS if by_id else 0
        )
        request = MetadataRequest(
            topics=None if wanted is None else [_asked(topic) for topic in wanted],
            allow_auto_topic_creation=version < FIRST_VERSION_WITHOUT_CREATION,
            include_topic_authorized_operations=authorized_operations
            and version >= FIRST_VERSION_WITH_OPERATIONS,
        )
        response: MetadataResponse = await connection.send(request, version=version)
        return response

    response = await client.retrying(attempt, timeout_ms=timeout_ms)
    return [
        TopicDescription(
            topic.name,
            topic.topic_id,
            topic.is_internal,
            tuple(_partition(each) for each in sorted(topic.partitions, key=_index)),
            operations_of(topic.topic_authorized_operations),
            failure_or_none(topic.error_code, topic.name or uuid_text(topic.topic_id)),
        )
        for topic in response.topics
    ]


def _asked(topic: str | TopicId) -> MetadataRequestTopic:
    if isinstance(topic, str):
        return MetadataRequestTopic(name=topic)
    return MetadataRequestTopic(name=None, topic_id=topic_id_of(topic))


def _partition(
    partition: MetadataResponsePartition | DescribeTopicPartitionsResponsePartition,
    eligible: list[int] | None = None,
    last_known: list[int] | None = None,
) -> PartitionDescription:
    return PartitionDescription(
        partition.partition_index,
        partition.leader_id,
        partition.leader_epoch,
        tuple(partition.replica_nodes),
        tuple(partition.isr_nodes),
        tuple(partition.offline_replicas),
        failure_or_none(partition.error_code, f"partition {partition.partition_index}"),
        None if eligible is None else tuple(eligible),
        None if last_known is None else tuple(last_known),
    )


def _index(
    partition: MetadataResponsePartition | DescribeTopicPartitionsResponsePartition,
) -> int:
    return partition.partition_index


async def describe_topic_partitions(
    client: ClusterClient,
    topics: Iterable[str],
    *,
    limit: int = 2000,
    start: PageStart | None = None,
    timeout_ms: float | None = None,
) -> TopicPage:
    """Return one page: at most `limit` partitions of the named topics, from `start` on.

    page = await describe_topic_partitions(client, ["orders"])
    while page.next is not None:
        page = await describe_topic_partitions(client, ["orders"], start=page.next)
    """
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in topics],
        response_partition_limit=limit,
        cursor=None
        if start is None
        else Cursor(topic_name=start.topic, partition_index=start.partition),
    )
    response: DescribeTopicPartitionsResponse = await client.retrying(
        lambda: client.send(request), timeout_ms=timeout_ms
    )
    described = tuple(
        TopicDescription(
            topic.name,
            topic.topic_id,
            topic.is_internal,
            tuple(
                _partition(each, each.eligible_leader_replicas, each.last_known_elr)
                for each in topic.partitions
            ),
            operations_of(topic.topic_authorized_operations),
            failure_or_none(topic.error_code, topic.name),
        )
        for topic in response.topics
    )
    cursor = response.next_cursor
    return TopicPage(
        described, None if cursor is None else PageStart(cursor.topic_name, cursor.partition_index)
    )
