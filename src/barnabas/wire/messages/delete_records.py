"""DeleteRecords (API key 21): raise the start offset of partition logs."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class DeleteRecordsPartition(Struct):
    partition_index: int = field("int32")
    offset: int = field("int64")


@struct
class DeleteRecordsTopic(Struct):
    name: str = field("string")
    partitions: list[DeleteRecordsPartition] = field([DeleteRecordsPartition])


@message(key=21, versions="0-2", flexible="2+")
class DeleteRecordsRequest(Message):
    topics: list[DeleteRecordsTopic] = field([DeleteRecordsTopic])
    timeout_ms: int = field("int32")


@struct
class DeleteRecordsPartitionResult(Struct):
    partition_index: int = field("int32")
    low_watermark: int = field("int64")
    error_code: int = field("int16")


@struct
class DeleteRecordsTopicResult(Struct):
    name: str = field("string")
    partitions: list[DeleteRecordsPartitionResult] = field([DeleteRecordsPartitionResult])


@message(key=21, versions="0-2", flexible="2+")
class DeleteRecordsResponse(Message):
    throttle_time_ms: int = field("int32")
    topics: list[DeleteRecordsTopicResult] = field([DeleteRecordsTopicResult])
