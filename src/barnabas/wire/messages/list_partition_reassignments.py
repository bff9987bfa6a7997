"""ListPartitionReassignments (API key 46): replicas that are on the move."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class ListPartitionReassignmentsTopics(Struct):
    name: str = field("string")
    partition_indexes: list[int] = field(["int32"])


@message(key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsRequest(Message):
    timeout_ms: int = field("int32", default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = field(
        [ListPartitionReassignmentsTopics], nullable=True, default=None
    )


@struct
class OngoingPartitionReassignment(Struct):
    partition_index: int = field("int32")
    replicas: list[int] = field(["int32"])
    adding_replicas: list[int] = field(["int32"])
    removing_replicas: list[int] = field(["int32"])


@struct
class OngoingTopicReassignment(Struct):
    name: str = field("string")
    partitions: list[OngoingPartitionReassignment] = field([OngoingPartitionReassignment])


@message(key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse(Message):
    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)
    topics: list[OngoingTopicReassignment] = field([OngoingTopicReassignment])
