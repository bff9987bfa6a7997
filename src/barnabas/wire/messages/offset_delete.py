"""OffsetDelete (API key 47): forget stored positions of a group."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class OffsetDeleteRequestPartition(Struct):
    partition_index: int = field("int32")


@struct
class OffsetDeleteRequestTopic(Struct):
    name: str = field("string")
    partitions: list[OffsetDeleteRequestPartition] = field([OffsetDeleteRequestPartition])


@message(key=47, versions="0")
class OffsetDeleteRequest(Message):
    group_id: str = field("string")
    topics: list[OffsetDeleteRequestTopic] = field([OffsetDeleteRequestTopic])


@struct
class OffsetDeleteResponsePartition(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")


@struct
class OffsetDeleteResponseTopic(Struct):
    name: str = field("string")
    partitions: list[OffsetDeleteResponsePartition] = field([OffsetDeleteResponsePartition])


@message(key=47, versions="0")
class OffsetDeleteResponse(Message):
    error_code: int = field("int16")
    throttle_time_ms: int = field("int32", ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = field([OffsetDeleteResponseTopic])
