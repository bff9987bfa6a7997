"""IncrementalAlterConfigs (API key 44): set, delete, append to or subtract from single options."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class AlterableConfig(Struct):
    name: str = field("string")
    config_operation: int = field("int8")
    value: str | None = field("string", nullable=True)


@struct
class AlterConfigsResource(Struct):
    resource_type: int = field("int8")
    resource_name: str = field("string")
    configs: list[AlterableConfig] = field([AlterableConfig])


@message(key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest(Message):
    resources: list[AlterConfigsResource] = field([AlterConfigsResource])
    validate_only: bool = field("bool")


@struct
class AlterConfigsResourceResponse(Struct):
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)
    resource_type: int = field("int8")
    resource_name: str = field("string")


@message(key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse(Message):
    throttle_time_ms: int = field("int32")
    responses: list[AlterConfigsResourceResponse] = field([AlterConfigsResourceResponse])
