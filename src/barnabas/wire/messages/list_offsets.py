"""ListOffsets (API key 2): find offsets by timestamp, or the ends of a log."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class ListOffsetsPartition(Struct):
    partition_index: int = field("int32")
    current_leader_epoch: int = field("int32", versions="4+", default=-1, ignorable=True)
    timestamp: int = field("int64")
    max_num_offsets: int = field("int32", versions="0", default=1)


@struct
class ListOffsetsTopic(Struct):
    name: str = field("string")
    partitions: list[ListOffsetsPartition] = field([ListOffsetsPartition])


@message(key=2, versions="0-11", flexible="6+")
class ListOffsetsRequest(Message):
    replica_id: int = field("int32")
    isolation_level: int = field("int8", versions="2+")
    topics: list[ListOffsetsTopic] = field([ListOffsetsTopic])
    timeout_ms: int = field("int32", versions="10+", ignorable=True)


@struct
class ListOffsetsPartitionResponse(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")
    old_style_offsets: list[int] = field(["int64"], versions="0")
    timestamp: int = field("int64", versions="1+", default=-1)
    offset: int = field("int64", versions="1+", default=-1)
    leader_epoch: int = field("int32", versions="4+", default=-1)


@struct
class ListOffsetsTopicResponse(Struct):
    name: str = field("string")
    partitions: list[ListOffsetsPartitionResponse] = field([ListOffsetsPartitionResponse])


@message(key=2, versions="0-11", flexible="6+")
class ListOffsetsResponse(Message):
    throttle_time_ms: int = field("int32", versions="2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = field([ListOffsetsTopicResponse])
