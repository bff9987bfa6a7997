"""FindCoordinator (API key 10): find the broker that coordinates a group or a transactional id."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@message(key=10, versions="0-6", flexible="3+")
class FindCoordinatorRequest(Message):
    key: str = field("string", versions="0-3")
    key_type: int = field("int8", versions="1+")
    coordinator_keys: list[str] = field(["string"], versions="4+")


@struct
class Coordinator(Struct):
    key: str = field("string")
    node_id: int = field("int32")
    host: str = field("string")
    port: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True, ignorable=True)


@message(key=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse(Message):
    throttle_time_ms: int = field("int32", versions="1+", ignorable=True)
    error_code: int = field("int16", versions="0-3")
    error_message: str | None = field("string", versions="1-3", nullable=True, ignorable=True)
    node_id: int = field("int32", versions="0-3")
    host: str = field("string", versions="0-3")
    port: int = field("int32", versions="0-3")
    coordinators: list[Coordinator] = field([Coordinator], versions="4+")
