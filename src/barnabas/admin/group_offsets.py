"""Committed offsets of groups, which can be read, set and deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.admin.coordinators import Kind, ask_coordinators, at_coordinator, capped
from barnabas.admin.failures import check, coded, failure, failure_or_none
from barnabas.admin.leaders import by_topic
from barnabas.admin.settling import settled_or_raise
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)

LAST_NAMED_VERSION = 7
"""Of OffsetFetch and OffsetCommit: one group per request, topics by name."""

FIRST_VERSION_OF_ALL = 2
"""Of OffsetFetch: all committed offsets of a group."""

FIRST_VERSION_WITH_STABLE = 7


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A group's committed offset of a partition; -1 means that there is none."""

    offset: int
    leader_epoch: int
    metadata: str


Committed = dict[TopicPartition, CommittedOffset | RequestError]


async def group_offsets(client: ClusterClient, name: str) -> dict[TopicPartition, CommittedOffset]:
    """Return all committed offsets of a group, sorted by topic and partition."""
    found = settled_or_raise(await list_group_offsets(client, {name: None}))[name]
    committed = settled_or_raise(found)
    return {
        partition: committed[partition]
        for partition in sorted(committed)
        if committed[partition].offset >= 0
    }


async def list_group_offsets(
    client: ClusterClient,
    groups: Mapping[str, Iterable[TopicPartition] | None],
    *,
    require_stable: bool = False,
    timeout_ms: float | None = None,
) -> dict[str, Committed | RequestError]:
    """Return committed offsets of groups: for some partitions, or (None) for all.

    With `require_stable`, offsets that a transaction is about to commit are waited for.

        await list_group_offsets(client, {"readers": None})
    """

    async def fetch(connection: Connection, name: str) -> Committed | RequestError:
        wanted = groups[name]
        least = FIRST_VERSION_OF_ALL if wanted is None else 0
        least = FIRST_VERSION_WITH_STABLE if require_stable else least
        version = connection.version_of(
            OffsetFetchRequest, at_least=least, at_most=LAST_NAMED_VERSION
        )
        request = OffsetFetchRequest(
            group_id=name,
            topics=None
            if wanted is None
            else [
                OffsetFetchRequestTopic(name=topic, partition_indexes=indexes)
                for topic, indexes in by_topic(wanted).items()
            ],
            require_stable=require_stable,
        )
        try:
            response: OffsetFetchResponse = await connection.send(request, version=version)
        except BarnabasError as broken:
            return coded(broken)
        if response.error_code:
            return failure(response.error_code, name)
        return _committed(response)

    async def ask(
        node_id: int, connection: Connection, names: list[str]
    ) -> dict[str, Committed | RequestError]:
        answers = await asyncio.gather(*(fetch(connection, name) for name in names))
        return dict(zip(names, answers, strict=True))

    return await ask_coordinators(client, groups, Kind.GROUP, ask, timeout_ms=timeout_ms)


def _committed(response: OffsetFetchResponse) -> Committed | RequestError:
    found: Committed = {}
    for topic in response.topics:
        for result in topic.partitions:
            partition = TopicPartition(topic.name, result.partition_index)
            code = ErrorCode.of(result.error_code)
            if code.retriable and not code.stale_metadata:
                return failure(code, partition)  # of the whole group: it is retried
            found[partition] = (
                failure(code, partition)
                if code
                else CommittedOffset(
                    result.committed_offset, result.committed_leader_epoch, result.metadata or ""
                )
            )
    return found


async def commit_offsets(
    client: ClusterClient,
    name: str,
    offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
    *,
    timeout_ms: float | None = None,
) -> dict[TopicPartition, RequestError | None]:
    """Set offsets of a group without members; return the failures by partition."""

    async def ask(connection: Connection) -> OffsetCommitResponse:
        request = OffsetCommitRequest(
            group_id=name,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        _to_commit(index, offsets[TopicPartition(topic, index)])
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(offsets).items()
            ],
        )
        version = capped(connection, OffsetCommitRequest, LAST_NAMED_VERSION)
        response: OffsetCommitResponse = await connection.send(request, version=version)
        for topic in response.topics:
            for result in topic.partitions:
                code = ErrorCode.of(result.error_code)
                if code.retriable and code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise failure(code, name)
        return response

    response = await at_coordinator(client, name, Kind.GROUP, ask, timeout_ms=timeout_ms)
    return {
        (partition := TopicPartition(topic.name, result.partition_index)): failure_or_none(
            result.error_code, partition
        )
        for topic in response.topics
        for result in topic.partitions
    }


def _to_commit(index: int, offset: int | OffsetAndMetadata) -> OffsetCommitRequestPartition:
    if isinstance(offset, int):
        return OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
    epoch = offset.leader_epoch
    return OffsetCommitRequestPartition(
        partition_index=index,
        committed_offset=offset.offset,
        committed_leader_epoch=-1 if epoch is None else epoch,
        committed_metadata=offset.metadata or "",
    )


async def delete_group_offsets(
    client: ClusterClient,
    name: str,
    partitions: Iterable[TopicPartition],
    *,
    timeout_ms: float | None = None,
) -> dict[TopicPartition, RequestError | None]:
    """Delete offsets of a group; raises if the request as a whole is rejected.

    A topic that a member of the group is subscribed to fails with GROUP_SUBSCRIBED_TO_TOPIC.
    """
    request = OffsetDeleteRequest(
        group_id=name,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=[OffsetDeleteRequestPartition(partition_index=i) for i in indexes],
            )
            for topic, indexes in by_topic(partitions).items()
        ],
    )

    async def ask(connection: Connection) -> OffsetDeleteResponse:
        response: OffsetDeleteResponse = await connection.send(request)
        check(response.error_code, name)
        return response

    response = await at_coordinator(client, name, Kind.GROUP, ask, timeout_ms=timeout_ms)
    return {
        (partition := TopicPartition(topic.name, result.partition_index)): failure_or_none(
            result.error_code, partition
        )
        for topic in response.topics
        for result in topic.partitions
    }
