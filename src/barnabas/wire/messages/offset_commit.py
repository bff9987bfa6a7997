"""OffsetCommit (API key 8): store the positions of a consumer group."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class OffsetCommitRequestPartition(Struct):
    partition_index: int = field("int32")
    committed_offset: int = field("int64")
    committed_leader_epoch: int = field("int32", versions="6+", default=-1, ignorable=True)
    commit_timestamp: int = field("int64", versions="1", default=-1)
    committed_metadata: str | None = field("string", nullable=True)


@struct
class OffsetCommitRequestTopic(Struct):
    name: str = field("string", versions="0-9", ignorable=True)
    topic_id: Uuid = field("uuid", versions="10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = field([OffsetCommitRequestPartition])


@message(key=8, versions="0-10", flexible="8+")
class OffsetCommitRequest(Message):
    group_id: str = field("string")
    generation_id_or_member_epoch: int = field("int32", versions="1+", default=-1, ignorable=True)
    member_id: str = field("string", versions="1+", ignorable=True)
    group_instance_id: str | None = field("string", versions="7+", nullable=True, default=None)
    retention_time_ms: int = field("int64", versions="2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = field([OffsetCommitRequestTopic])


@struct
class OffsetCommitResponsePartition(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")


@struct
class OffsetCommitResponseTopic(Struct):
    name: str = field("string", versions="0-9", ignorable=True)
    topic_id: Uuid = field("uuid", versions="10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = field([OffsetCommitResponsePartition])


@message(key=8, versions="0-10", flexible="8+")
class OffsetCommitResponse(Message):
    throttle_time_ms: int = field("int32", versions="3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = field([OffsetCommitResponseTopic])
