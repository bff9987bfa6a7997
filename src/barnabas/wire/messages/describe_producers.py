"""DescribeProducers (API key 61): active producers of partitions."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class TopicRequest(Struct):
    name: str = field("string")
    partition_indexes: list[int] = field(["int32"])


@message(key=61, versions="0", flexible="0+")
class DescribeProducersRequest(Message):
    topics: list[TopicRequest] = field([TopicRequest])


@struct
class ProducerState(Struct):
    producer_id: int = field("int64")
    producer_epoch: int = field("int32")
    last_sequence: int = field("int32", default=-1)
    last_timestamp: int = field("int64", default=-1)
    coordinator_epoch: int = field("int32")
    current_txn_start_offset: int = field("int64", default=-1)


@struct
class PartitionResponse(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True, default=None)
    active_producers: list[ProducerState] = field([ProducerState])


@struct
class TopicResponse(Struct):
    name: str = field("string")
    partitions: list[PartitionResponse] = field([PartitionResponse])


@message(key=61, versions="0", flexible="0+")
class DescribeProducersResponse(Message):
    throttle_time_ms: int = field("int32")
    topics: list[TopicResponse] = field([TopicResponse])
