"""DescribeTopicPartitions (API key 75): partitions of topics, page by page."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class TopicRequest(Struct):
    name: str = field("string")


@struct
class Cursor(Struct):
    topic_name: str = field("string")
    partition_index: int = field("int32")


@message(key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsRequest(Message):
    topics: list[TopicRequest] = field([TopicRequest])
    response_partition_limit: int = field("int32", default=2000)
    cursor: Cursor | None = field(Cursor, nullable=True, default=None)


@struct
class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: int = field("int16")
    partition_index: int = field("int32")
    leader_id: int = field("int32")
    leader_epoch: int = field("int32", default=-1, ignorable=True)
    replica_nodes: list[int] = field(["int32"])
    isr_nodes: list[int] = field(["int32"])
    eligible_leader_replicas: list[int] | None = field(["int32"], nullable=True, default=None)
    last_known_elr: list[int] | None = field(["int32"], nullable=True, default=None)
    offline_replicas: list[int] = field(["int32"], ignorable=True)


@struct
class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: int = field("int16")
    name: str | None = field("string", nullable=True)
    topic_id: Uuid = field("uuid", ignorable=True)
    is_internal: bool = field("bool", ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = field(
        [DescribeTopicPartitionsResponsePartition]
    )
    topic_authorized_operations: int = field("int32", default=-2147483648)


@message(key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse(Message):
    throttle_time_ms: int = field("int32", ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = field(
        [DescribeTopicPartitionsResponseTopic]
    )
    next_cursor: Cursor | None = field(Cursor, nullable=True, default=None)
