"""DescribeGroups (API key 15): members and state of classic consumer groups."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@message(key=15, versions="0-6", flexible="5+")
class DescribeGroupsRequest(Message):
    groups: list[str] = field(["string"])
    include_authorized_operations: bool = field("bool", versions="3+")


@struct
class DescribedGroupMember(Struct):
    member_id: str = field("string")
    group_instance_id: str | None = field(
        "string", versions="4+", nullable=True, default=None, ignorable=True
    )
    client_id: str = field("string")
    client_host: str = field("string")
    member_metadata: bytes = field("bytes")
    member_assignment: bytes = field("bytes")


@struct
class DescribedGroup(Struct):
    error_code: int = field("int16")
    error_message: str | None = field("string", versions="6+", nullable=True, default=None)
    group_id: str = field("string")
    group_state: str = field("string")
    protocol_type: str = field("string")
    protocol_data: str = field("string")
    members: list[DescribedGroupMember] = field([DescribedGroupMember])
    authorized_operations: int = field("int32", versions="3+", default=-2147483648)


@message(key=15, versions="0-6", flexible="5+")
class DescribeGroupsResponse(Message):
    throttle_time_ms: int = field("int32", versions="1+", ignorable=True)
    groups: list[DescribedGroup] = field([DescribedGroup])
