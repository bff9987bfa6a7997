"""OffsetCommit and OffsetFetch in all their versions: what is asked, and what the answers say.

Versions 0 kept offsets in ZooKeeper, so 1 is the least that is spoken; from 10 on topics go by
their ids, so 9 is the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.consumer.group.contract import Offsets
from barnabas.consumer.group.foreign import grouped
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

VERSION_MIN: Final = 1
VERSION_MAX: Final = 9
EPOCH_VERSION: Final = 9
"""The first version that members of KIP-848 groups can speak."""

_INSTANCE_VERSION: Final = 7
_STABLE_VERSION: Final = 7
_GROUPS_VERSION: Final = 8


class Identity(NamedTuple):
    """In whose name offsets are committed and read; the default is nobody of the group."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None
    by_epoch: bool = False
    """The generation is a member's epoch (KIP-848)."""


class Fetched(NamedTuple):
    """What an answer to OffsetFetch says."""

    error: ErrorCode
    errors: Mapping[TopicPartition, ErrorCode]
    offsets: Mapping[TopicPartition, OffsetAndMetadata]


def commit_request(identity: Identity, offsets: Offsets, version: int) -> OffsetCommitRequest:
    """Ask to commit."""
    return OffsetCommitRequest(
        group_id=identity.group_id,
        generation_id_or_member_epoch=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.instance_id if version >= _INSTANCE_VERSION else None,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[_partition(n, offsets[TopicPartition(topic, n)]) for n in numbers],
            )
            for topic, numbers in grouped(offsets)
        ],
    )


def _partition(number: int, wanted: OffsetAndMetadata) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=number,
        committed_offset=wanted.offset,
        committed_leader_epoch=-1 if wanted.leader_epoch is None else wanted.leader_epoch,
        committed_metadata=wanted.metadata,
    )


def commit_errors(response: OffsetCommitResponse) -> dict[TopicPartition, ErrorCode]:
    """Return the partitions that were not committed, and why."""
    return {
        TopicPartition(topic.name, partition.partition_index): ErrorCode.of(partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
        if partition.error_code != ErrorCode.NONE
    }


def fetch_request(
    identity: Identity, partitions: Iterable[TopicPartition], require_stable: bool, version: int
) -> OffsetFetchRequest:
    """Ask for committed offsets."""
    wanted = grouped(partitions)
    if version < _GROUPS_VERSION:
        return OffsetFetchRequest(
            group_id=identity.group_id,
            topics=[
                OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
                for topic, numbers in wanted
            ],
            # Older brokers answer with what is committed so far: they know no better.
            require_stable=require_stable and version >= _STABLE_VERSION,
        )
    group = OffsetFetchRequestGroup(
        group_id=identity.group_id,
        member_id=identity.member_id if identity.by_epoch else None,
        member_epoch=identity.generation if identity.by_epoch else -1,
        topics=[
            OffsetFetchRequestTopics(name=topic, partition_indexes=numbers)
            for topic, numbers in wanted
        ],
    )
    return OffsetFetchRequest(groups=[group], require_stable=require_stable)


def fetched(response: OffsetFetchResponse, version: int) -> Fetched:
    """Read an answer; a partition without a committed offset is in none of its tables."""
    answer = response.groups[0] if version >= _GROUPS_VERSION else response
    errors: dict[TopicPartition, ErrorCode] = {}
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    for topic in answer.topics:
        for found in topic.partitions:
            partition = TopicPartition(topic.name, found.partition_index)
            if found.error_code != ErrorCode.NONE:
                errors[partition] = ErrorCode.of(found.error_code)
            elif found.committed_offset >= 0:
                offsets[partition] = OffsetAndMetadata(
                    found.committed_offset, found.metadata or "", found.committed_leader_epoch
                )
    return Fetched(ErrorCode.of(answer.error_code), errors, offsets)
