"""DeleteGroups (API key 42): delete empty groups and their offsets."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@message(key=42, versions="0-2", flexible="2+")
class DeleteGroupsRequest(Message):
    groups_names: list[str] = field(["string"])


@struct
class DeletableGroupResult(Struct):
    group_id: str = field("string")
    error_code: int = field("int16")


@message(key=42, versions="0-2", flexible="2+")
class DeleteGroupsResponse(Message):
    throttle_time_ms: int = field("int32")
    results: list[DeletableGroupResult] = field([DeletableGroupResult])
