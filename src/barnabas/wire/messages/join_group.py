"""JoinGroup (API key 11): enter a classic consumer group, or enter its next generation."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class JoinGroupRequestProtocol(Struct):
    name: str = field("string")
    metadata: bytes = field("bytes")


@message(key=11, versions="0-9", flexible="6+")
class JoinGroupRequest(Message):
    group_id: str = field("string")
    session_timeout_ms: int = field("int32")
    rebalance_timeout_ms: int = field("int32", versions="1+", default=-1, ignorable=True)
    member_id: str = field("string")
    group_instance_id: str | None = field("string", versions="5+", nullable=True, default=None)
    protocol_type: str = field("string")
    protocols: list[JoinGroupRequestProtocol] = field([JoinGroupRequestProtocol])
    reason: str | None = field("string", versions="8+", nullable=True, default=None, ignorable=True)


@struct
class JoinGroupResponseMember(Struct):
    member_id: str = field("string")
    group_instance_id: str | None = field(
        "string", versions="5+", nullable=True, default=None, ignorable=True
    )
    metadata: bytes = field("bytes")


@message(key=11, versions="0-9", flexible="6+")
class JoinGroupResponse(Message):
    throttle_time_ms: int = field("int32", versions="2+", ignorable=True)
    error_code: int = field("int16")
    generation_id: int = field("int32", default=-1)
    protocol_type: str | None = field(
        "string", versions="7+", nullable=True, default=None, ignorable=True
    )
    protocol_name: str | None = field("string", nullable="7+")
    leader: str = field("string")
    skip_assignment: bool = field("bool", versions="9+")
    member_id: str = field("string")
    members: list[JoinGroupResponseMember] = field([JoinGroupResponseMember])
