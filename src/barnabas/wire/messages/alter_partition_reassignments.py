"""AlterPartitionReassignments (API key 45): start or cancel moving replicas between brokers."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class ReassignablePartition(Struct):
    partition_index: int = field("int32")
    replicas: list[int] | None = field(["int32"], nullable=True, default=None)


@struct
class ReassignableTopic(Struct):
    name: str = field("string")
    partitions: list[ReassignablePartition] = field([ReassignablePartition])


@message(key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest(Message):
    timeout_ms: int = field("int32", default=60000)
    allow_replication_factor_change: bool = field("bool", versions="1+", default=True)
    topics: list[ReassignableTopic] = field([ReassignableTopic])


@struct
class ReassignablePartitionResponse(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)


@struct
class ReassignableTopicResponse(Struct):
    name: str = field("string")
    partitions: list[ReassignablePartitionResponse] = field([ReassignablePartitionResponse])


@message(key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse(Message):
    throttle_time_ms: int = field("int32")
    allow_replication_factor_change: bool = field(
        "bool", versions="1+", default=True, ignorable=True
    )
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)
    responses: list[ReassignableTopicResponse] = field([ReassignableTopicResponse])
