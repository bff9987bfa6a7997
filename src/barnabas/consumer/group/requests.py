"""The requests of group members in all their versions, and how to read some of the responses.

Pure: identity and version in, a message out. Fields that an old broker does not know are left out
if that does no harm; an instance id is rejected, because without it the member would not be what
the user asked for.

Versions 0 of OffsetCommit and OffsetFetch kept offsets in ZooKeeper, so 1 is the lowest one used;
from 10 on topics are named by id, so 9 is the highest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.consumer.group.callbacks import Offsets
from barnabas.consumer.group.settings import GroupSettings
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import UnsupportedVersionError
from barnabas.structs import OffsetAndMetadata
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
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
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

PROTOCOL_TYPE: Final = "consumer"
REASON_LENGTH_MAX: Final = 255

VERSION_MIN: Final = 1  # of OffsetCommit and OffsetFetch
VERSION_MAX: Final = 9
EPOCH_VERSION: Final = 9
"""The first version that supports members of KIP-848 groups."""

_JOIN_INSTANCE_VERSION: Final = 5
_INSTANCE_VERSION: Final = 3  # of SyncGroup and Heartbeat
_LEAVE_MEMBERS_VERSION: Final = 3
_COMMIT_INSTANCE_VERSION: Final = 7
_STABLE_VERSION: Final = 7
_GROUPS_VERSION: Final = 8


class JoinedMember(NamedTuple):
    """The member that sends a request."""

    member_id: str
    generation: int


def join_request(
    settings: GroupSettings,
    member_id: str,
    protocols: Sequence[tuple[str, bytes]],
    reason: str | None,
    version: int,
) -> JoinGroupRequest:
    """Build a JoinGroup request that offers assignors and their metadata."""
    if settings.instance_id is not None and version < _JOIN_INSTANCE_VERSION:
        raise UnsupportedVersionError(
            f"group.instance.id={settings.instance_id}: the broker is too old for static members "
            f"(JoinGroup version {version}, they need {_JOIN_INSTANCE_VERSION})"
        )
    return JoinGroupRequest(
        group_id=settings.group_id,
        session_timeout_ms=settings.session_timeout_ms,
        rebalance_timeout_ms=settings.rebalance_ms_max,
        member_id=member_id,
        group_instance_id=settings.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=[
            JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols
        ],
        reason=None if reason is None else reason[:REASON_LENGTH_MAX],
    )


def sync_request(
    settings: GroupSettings,
    member: JoinedMember,
    protocol: str | None,
    assignments: Mapping[str, bytes],
    version: int,
) -> SyncGroupRequest:
    """Build a SyncGroup request; the leader's carries everyone's assignment."""
    return SyncGroupRequest(
        group_id=settings.group_id,
        generation_id=member.generation,
        member_id=member.member_id,
        group_instance_id=settings.instance_id if version >= _INSTANCE_VERSION else None,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=protocol,
        assignments=[
            SyncGroupRequestAssignment(member_id=name, assignment=assignment)
            for name, assignment in assignments.items()
        ],
    )


def heartbeat_request(
    settings: GroupSettings, member: JoinedMember, version: int
) -> HeartbeatRequest:
    """Build a Heartbeat request."""
    return HeartbeatRequest(
        group_id=settings.group_id,
        generation_id=member.generation,
        member_id=member.member_id,
        group_instance_id=settings.instance_id if version >= _INSTANCE_VERSION else None,
    )


def leave_request(
    settings: GroupSettings, member_id: str, reason: str, version: int
) -> LeaveGroupRequest:
    """Build a LeaveGroup request."""
    if version < _LEAVE_MEMBERS_VERSION:
        return LeaveGroupRequest(group_id=settings.group_id, member_id=member_id)
    identity = MemberIdentity(
        member_id=member_id,
        group_instance_id=settings.instance_id,
        reason=reason[:REASON_LENGTH_MAX],
    )
    return LeaveGroupRequest(group_id=settings.group_id, members=[identity])


def leave_error(response: LeaveGroupResponse) -> int:
    """Return the error code of a response, the member's own if there is one."""
    return response.error_code or next((each.error_code for each in response.members), 0)


class Identity(NamedTuple):
    """The identity for committing and reading offsets; the default is not a member."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None
    by_epoch: bool = False
    """The generation is a member epoch (KIP-848)."""


class Fetched(NamedTuple):
    """The contents of an OffsetFetch response."""

    error: ErrorCode
    errors: Mapping[TopicPartition, ErrorCode]
    offsets: Mapping[TopicPartition, OffsetAndMetadata]


def commit_request(identity: Identity, offsets: Offsets, version: int) -> OffsetCommitRequest:
    """Build an OffsetCommit request."""
    return OffsetCommitRequest(
        group_id=identity.group_id,
        generation_id_or_member_epoch=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.instance_id if version >= _COMMIT_INSTANCE_VERSION else None,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[_partition(n, offsets[TopicPartition(topic, n)]) for n in numbers],
            )
            for topic, numbers in by_topic(offsets)
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
    """Return the partitions that were not committed, with their error codes."""
    return {
        TopicPartition(topic.name, partition.partition_index): ErrorCode.of(partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
        if partition.error_code != ErrorCode.NONE
    }


def fetch_request(
    identity: Identity, partitions: Iterable[TopicPartition], require_stable: bool, version: int
) -> OffsetFetchRequest:
    """Build an OffsetFetch request."""
    wanted = by_topic(partitions)
    if version < _GROUPS_VERSION:
        return OffsetFetchRequest(
            group_id=identity.group_id,
            topics=[
                OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
                for topic, numbers in wanted
            ],
            # Older brokers ignore pending transactions and return what is committed so far.
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
    """Read a response; a partition without a committed offset is in none of its tables."""
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


def by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Return partitions grouped as pairs of a topic and its partition numbers."""
    topics: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        topics.setdefault(partition.topic, []).append(partition.partition)
    return list(topics.items())
