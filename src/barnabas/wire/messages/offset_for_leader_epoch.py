"""OffsetForLeaderEpoch (API key 23): where a leader epoch ends in a log."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class OffsetForLeaderPartition(Struct):
    partition: int = field("int32")
    current_leader_epoch: int = field("int32", versions="2+", default=-1, ignorable=True)
    leader_epoch: int = field("int32")


@struct
class OffsetForLeaderTopic(Struct):
    topic: str = field("string")
    partitions: list[OffsetForLeaderPartition] = field([OffsetForLeaderPartition])


@message(key=23, versions="0-4", flexible="4+")
class OffsetForLeaderEpochRequest(Message):
    replica_id: int = field("int32", versions="3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = field([OffsetForLeaderTopic])


@struct
class EpochEndOffset(Struct):
    error_code: int = field("int16")
    partition: int = field("int32")
    leader_epoch: int = field("int32", versions="1+", default=-1, ignorable=True)
    end_offset: int = field("int64", default=-1)


@struct
class OffsetForLeaderTopicResult(Struct):
    topic: str = field("string")
    partitions: list[EpochEndOffset] = field([EpochEndOffset])


@message(key=23, versions="0-4", flexible="4+")
class OffsetForLeaderEpochResponse(Message):
    throttle_time_ms: int = field("int32", versions="2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = field([OffsetForLeaderTopicResult])
