"""ConsumerGroupHeartbeat (API key 68): take part in a KIP-848 group."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class TopicPartitions(Struct):
    topic_id: Uuid = field("uuid")
    partitions: list[int] = field(["int32"])


@message(key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest(Message):
    group_id: str = field("string")
    member_id: str = field("string")
    member_epoch: int = field("int32")
    instance_id: str | None = field("string", nullable=True, default=None)
    rack_id: str | None = field("string", nullable=True, default=None)
    rebalance_timeout_ms: int = field("int32", default=-1)
    subscribed_topic_names: list[str] | None = field(["string"], nullable=True, default=None)
    subscribed_topic_regex: str | None = field("string", versions="1+", nullable=True, default=None)
    server_assignor: str | None = field("string", nullable=True, default=None)
    topic_partitions: list[TopicPartitions] | None = field(
        [TopicPartitions], nullable=True, default=None
    )


@struct
class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = field([TopicPartitions])


@message(key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse(Message):
    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True, default=None)
    member_id: str | None = field("string", nullable=True, default=None)
    member_epoch: int = field("int32")
    heartbeat_interval_ms: int = field("int32")
    assignment: Assignment | None = field(Assignment, nullable=True, default=None)
