"""SyncGroup (API key 14): hand out and receive the assignment of a generation."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class SyncGroupRequestAssignment(Struct):
    member_id: str = field("string")
    assignment: bytes = field("bytes")


@message(key=14, versions="0-5", flexible="4+")
class SyncGroupRequest(Message):
    group_id: str = field("string")
    generation_id: int = field("int32")
    member_id: str = field("string")
    group_instance_id: str | None = field("string", versions="3+", nullable=True, default=None)
    protocol_type: str | None = field(
        "string", versions="5+", nullable=True, default=None, ignorable=True
    )
    protocol_name: str | None = field(
        "string", versions="5+", nullable=True, default=None, ignorable=True
    )
    assignments: list[SyncGroupRequestAssignment] = field([SyncGroupRequestAssignment])


@message(key=14, versions="0-5", flexible="4+")
class SyncGroupResponse(Message):
    throttle_time_ms: int = field("int32", versions="1+", ignorable=True)
    error_code: int = field("int16")
    protocol_type: str | None = field(
        "string", versions="5+", nullable=True, default=None, ignorable=True
    )
    protocol_name: str | None = field(
        "string", versions="5+", nullable=True, default=None, ignorable=True
    )
    assignment: bytes = field("bytes")
