"""DescribeConfigs (API key 32): options of topics and brokers, with where each value comes from."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class DescribeConfigsResource(Struct):
    resource_type: int = field("int8")
    resource_name: str = field("string")
    configuration_keys: list[str] | None = field(["string"], nullable=True)


@message(key=32, versions="0-4", flexible="4+")
class DescribeConfigsRequest(Message):
    resources: list[DescribeConfigsResource] = field([DescribeConfigsResource])
    include_synonyms: bool = field("bool", versions="1+")
    include_documentation: bool = field("bool", versions="3+")


@struct
class DescribeConfigsSynonym(Struct):
    name: str = field("string")
    value: str | None = field("string", nullable=True)
    source: int = field("int8")


@struct
class DescribeConfigsResourceResult(Struct):
    name: str = field("string")
    value: str | None = field("string", nullable=True)
    read_only: bool = field("bool")
    config_source: int = field("int8", versions="1+", default=-1, ignorable=True)
    is_default: bool = field("bool", versions="0")
    is_sensitive: bool = field("bool")
    synonyms: list[DescribeConfigsSynonym] = field(
        [DescribeConfigsSynonym], versions="1+", ignorable=True
    )
    config_type: int = field("int8", versions="3+", ignorable=True)
    documentation: str | None = field("string", versions="3+", nullable=True, ignorable=True)


@struct
class DescribeConfigsResult(Struct):
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)
    resource_type: int = field("int8")
    resource_name: str = field("string")
    configs: list[DescribeConfigsResourceResult] = field([DescribeConfigsResourceResult])


@message(key=32, versions="0-4", flexible="4+")
class DescribeConfigsResponse(Message):
    throttle_time_ms: int = field("int32")
    results: list[DescribeConfigsResult] = field([DescribeConfigsResult])
