"""ListGroups (API key 16): the groups that a broker coordinates."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@message(key=16, versions="0-5", flexible="3+")
class ListGroupsRequest(Message):
    states_filter: list[str] = field(["string"], versions="4+")
    types_filter: list[str] = field(["string"], versions="5+")


@struct
class ListedGroup(Struct):
    group_id: str = field("string")
    protocol_type: str = field("string")
    group_state: str = field("string", versions="4+", ignorable=True)
    group_type: str = field("string", versions="5+", ignorable=True)


@message(key=16, versions="0-5", flexible="3+")
class ListGroupsResponse(Message):
    throttle_time_ms: int = field("int32", versions="1+", ignorable=True)
    error_code: int = field("int16")
    groups: list[ListedGroup] = field([ListedGroup])
