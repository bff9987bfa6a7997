"""CreateDelegationToken (API key 38): issue a delegation token."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class CreatableRenewers(Struct):
    principal_type: str = field("string")
    principal_name: str = field("string")


@message(key=38, versions="0-3", flexible="2+")
class CreateDelegationTokenRequest(Message):
    owner_principal_type: str | None = field("string", versions="3+", nullable=True)
    owner_principal_name: str | None = field("string", versions="3+", nullable=True)
    renewers: list[CreatableRenewers] = field([CreatableRenewers])
    max_lifetime_ms: int = field("int64")


@message(key=38, versions="0-3", flexible="2+")
class CreateDelegationTokenResponse(Message):
    error_code: int = field("int16")
    principal_type: str = field("string")
    principal_name: str = field("string")
    token_requester_principal_type: str = field("string", versions="3+")
    token_requester_principal_name: str = field("string", versions="3+")
    issue_timestamp_ms: int = field("int64")
    expiry_timestamp_ms: int = field("int64")
    max_timestamp_ms: int = field("int64")
    token_id: str = field("string")
    hmac: bytes = field("bytes")
    throttle_time_ms: int = field("int32")
