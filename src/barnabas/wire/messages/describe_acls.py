"""DescribeAcls (API key 29): access rules that match a filter."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@message(key=29, versions="0-3", flexible="2+")
class DescribeAclsRequest(Message):
    resource_type_filter: int = field("int8")
    resource_name_filter: str | None = field("string", nullable=True)
    pattern_type_filter: int = field("int8", versions="1+", default=3)
    principal_filter: str | None = field("string", nullable=True)
    host_filter: str | None = field("string", nullable=True)
    operation: int = field("int8")
    permission_type: int = field("int8")


@struct
class AclDescription(Struct):
    principal: str = field("string")
    host: str = field("string")
    operation: int = field("int8")
    permission_type: int = field("int8")


@struct
class DescribeAclsResource(Struct):
    resource_type: int = field("int8")
    resource_name: str = field("string")
    pattern_type: int = field("int8", versions="1+", default=3)
    acls: list[AclDescription] = field([AclDescription])


@message(key=29, versions="0-3", flexible="2+")
class DescribeAclsResponse(Message):
    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)
    resources: list[DescribeAclsResource] = field([DescribeAclsResource])
