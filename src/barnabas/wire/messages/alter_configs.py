"""AlterConfigs (API key 33): replace all options of a resource."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class AlterableConfig(Struct):
    name: str = field("string")
    value: str | None = field("string", nullable=True)


@struct
class AlterConfigsResource(Struct):
    resource_type: int = field("int8")
    resource_name: str = field("string")
    configs: list[AlterableConfig] = field([AlterableConfig])


@message(key=33, versions="0-2", flexible="2+")
class AlterConfigsRequest(Message):
    resources: list[AlterConfigsResource] = field([AlterConfigsResource])
    validate_only: bool = field("bool")


@struct
class AlterConfigsResourceResponse(Struct):
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)
    resource_type: int = field("int8")
    resource_name: str = field("string")


@message(key=33, versions="0-2", flexible="2+")
class AlterConfigsResponse(Message):
    throttle_time_ms: int = field("int32")
    responses: list[AlterConfigsResourceResponse] = field([AlterConfigsResourceResponse])
