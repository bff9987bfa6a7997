"""ConsumerGroupDescribe (API key 69): members and assignments of consumer groups (KIP-848)."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.schema import Message, Struct, field, message, struct


@message(key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest(Message):
    group_ids: list[str] = field(["string"])
    include_authorized_operations: bool = field("bool")


@struct
class TopicPartitions(Struct):
    topic_id: Uuid = field("uuid")
    topic_name: str = field("string")
    partitions: list[int] = field(["int32"])


@struct
class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = field([TopicPartitions])


@struct
class Member(Struct):
    member_id: str = field("string")
    instance_id: str | None = field("string", nullable=True, default=None)
    rack_id: str | None = field("string", nullable=True, default=None)
    member_epoch: int = field("int32")
    client_id: str = field("string")
    client_host: str = field("string")
    subscribed_topic_names: list[str] = field(["string"])
    subscribed_topic_regex: str | None = field("string", nullable=True, default=None)
    assignment: Assignment = field(Assignment)
    target_assignment: Assignment = field(Assignment)
    member_type: int = field("int8", versions="1+", default=-1, ignorable=True)


@struct
class DescribedGroup(Struct):
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True, default=None)
    group_id: str = field("string")
    group_state: str = field("string")
    group_epoch: int = field("int32")
    assignment_epoch: int = field("int32")
    assignor_name: str = field("string")
    members: list[Member] = field([Member])
    authorized_operations: int = field("int32", default=-2147483648)


@message(key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse(Message):
    throttle_time_ms: int = field("int32")
    groups: list[DescribedGroup] = field([DescribedGroup])
