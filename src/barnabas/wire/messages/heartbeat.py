"""Heartbeat (API key 12): stay a member of a classic consumer group."""

from __future__ import annotations

from barnabas.wire.schema import Message, field, message


@message(key=12, versions="0-4", flexible="4+")
class HeartbeatRequest(Message):
    group_id: str = field("string")
    generation_id: int = field("int32")
    member_id: str = field("string")
    group_instance_id: str | None = field("string", versions="3+", nullable=True, default=None)


@message(key=12, versions="0-4", flexible="4+")
class HeartbeatResponse(Message):
    throttle_time_ms: int = field("int32", versions="1+", ignorable=True)
    error_code: int = field("int16")
