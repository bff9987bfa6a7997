"""TxnOffsetCommit (API key 28): store group positions as part of a transaction."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class TxnOffsetCommitRequestPartition(Struct):
    partition_index: int = field("int32")
    committed_offset: int = field("int64")
    committed_leader_epoch: int = field("int32", versions="2+", default=-1, ignorable=True)
    committed_metadata: str | None = field("string", nullable=True)


@struct
class TxnOffsetCommitRequestTopic(Struct):
    name: str = field("string")
    partitions: list[TxnOffsetCommitRequestPartition] = field([TxnOffsetCommitRequestPartition])


@message(key=28, versions="0-5", flexible="3+")
class TxnOffsetCommitRequest(Message):
    transactional_id: str = field("string")
    group_id: str = field("string")
    producer_id: int = field("int64")
    producer_epoch: int = field("int16")
    generation_id: int = field("int32", versions="3+", default=-1)
    member_id: str = field("string", versions="3+")
    group_instance_id: str | None = field("string", versions="3+", nullable=True, default=None)
    topics: list[TxnOffsetCommitRequestTopic] = field([TxnOffsetCommitRequestTopic])


@struct
class TxnOffsetCommitResponsePartition(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")


@struct
class TxnOffsetCommitResponseTopic(Struct):
    name: str = field("string")
    partitions: list[TxnOffsetCommitResponsePartition] = field([TxnOffsetCommitResponsePartition])


@message(key=28, versions="0-5", flexible="3+")
class TxnOffsetCommitResponse(Message):
    throttle_time_ms: int = field("int32")
    topics: list[TxnOffsetCommitResponseTopic] = field([TxnOffsetCommitResponseTopic])
