"""LeaveGroup (API key 13): leave a classic consumer group."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class MemberIdentity(Struct):
    member_id: str = field("string")
    group_instance_id: str | None = field("string", nullable=True, default=None)
    reason: str | None = field("string", versions="5+", nullable=True, default=None, ignorable=True)


@message(key=13, versions="0-5", flexible="4+")
class LeaveGroupRequest(Message):
    group_id: str = field("string")
    member_id: str = field("string", versions="0-2")
    members: list[MemberIdentity] = field([MemberIdentity], versions="3+")


@struct
class MemberResponse(Struct):
    member_id: str = field("string")
    group_instance_id: str | None = field("string", nullable=True)
    error_code: int = field("int16")


@message(key=13, versions="0-5", flexible="4+")
class LeaveGroupResponse(Message):
    throttle_time_ms: int = field("int32", versions="1+", ignorable=True)
    error_code: int = field("int16")
    members: list[MemberResponse] = field([MemberResponse], versions="3+")
