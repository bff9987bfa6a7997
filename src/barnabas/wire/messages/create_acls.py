"""CreateAcls (API key 30): add access rules."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class AclCreation(Struct):
    resource_type: int = field("int8")
    resource_name: str = field("string")
    resource_pattern_type: int = field("int8", versions="1+", default=3)
    principal: str = field("string")
    host: str = field("string")
    operation: int = field("int8")
    permission_type: int = field("int8")


@message(key=30, versions="0-3", flexible="2+")
class CreateAclsRequest(Message):
    creations: list[AclCreation] = field([AclCreation])


@struct
class AclCreationResult(Struct):
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)


@message(key=30, versions="0-3", flexible="2+")
class CreateAclsResponse(Message):
    throttle_time_ms: int = field("int32")
    results: list[AclCreationResult] = field([AclCreationResult])
