"""CreatePartitions (API key 37): add partitions to topics."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class CreatePartitionsAssignment(Struct):
    broker_ids: list[int] = field(["int32"])


@struct
class CreatePartitionsTopic(Struct):
    name: str = field("string")
    count: int = field("int32")
    assignments: list[CreatePartitionsAssignment] | None = field(
        [CreatePartitionsAssignment], nullable=True
    )


@message(key=37, versions="0-3", flexible="2+")
class CreatePartitionsRequest(Message):
    topics: list[CreatePartitionsTopic] = field([CreatePartitionsTopic])
    timeout_ms: int = field("int32")
    validate_only: bool = field("bool")


@struct
class CreatePartitionsTopicResult(Struct):
    name: str = field("string")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True, default=None)


@message(key=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse(Message):
    throttle_time_ms: int = field("int32")
    results: list[CreatePartitionsTopicResult] = field([CreatePartitionsTopicResult])
