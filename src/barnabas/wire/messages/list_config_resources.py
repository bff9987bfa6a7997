"""ListConfigResources (API key 74): resources with dynamic options (v0: metrics only)."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@message(key=74, versions="0-1", flexible="0+")
class ListConfigResourcesRequest(Message):
    resource_types: list[int] = field(["int8"], versions="1+")


@struct
class ConfigResource(Struct):
    resource_name: str = field("string")
    resource_type: int = field("int8", versions="1+", default=16, ignorable=True)


@message(key=74, versions="0-1", flexible="0+")
class ListConfigResourcesResponse(Message):
    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    config_resources: list[ConfigResource] = field([ConfigResource])
