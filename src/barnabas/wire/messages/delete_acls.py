"""DeleteAcls (API key 31): remove access rules that match filters."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class DeleteAclsFilter(Struct):
    resource_type_filter: int = field("int8")
    resource_name_filter: str | None = field("string", nullable=True)
    pattern_type_filter: int = field("int8", versions="1+", default=3)
    principal_filter: str | None = field("string", nullable=True)
    host_filter: str | None = field("string", nullable=True)
    operation: int = field("int8")
    permission_type: int = field("int8")


@message(key=31, versions="0-3", flexible="2+")
class DeleteAclsRequest(Message):
    filters: list[DeleteAclsFilter] = field([DeleteAclsFilter])


@struct
class DeleteAclsMatchingAcl(Struct):
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)
    resource_type: int = field("int8")
    resource_name: str = field("string")
    pattern_type: int = field("int8", versions="1+", default=3)
    principal: str = field("string")
    host: str = field("string")
    operation: int = field("int8")
    permission_type: int = field("int8")


@struct
class DeleteAclsFilterResult(Struct):
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)
    matching_acls: list[DeleteAclsMatchingAcl] = field([DeleteAclsMatchingAcl])


@message(key=31, versions="0-3", flexible="2+")
class DeleteAclsResponse(Message):
    throttle_time_ms: int = field("int32")
    filter_results: list[DeleteAclsFilterResult] = field([DeleteAclsFilterResult])
