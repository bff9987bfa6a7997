"""DescribeDelegationToken (API key 41): delegation tokens of given owners."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class DescribeDelegationTokenOwner(Struct):
    principal_type: str = field("string")
    principal_name: str = field("string")


@message(key=41, versions="0-3", flexible="2+")
class DescribeDelegationTokenRequest(Message):
    owners: list[DescribeDelegationTokenOwner] | None = field(
        [DescribeDelegationTokenOwner], nullable=True
    )


@struct
class DescribedDelegationTokenRenewer(Struct):
    principal_type: str = field("string")
    principal_name: str = field("string")


@struct
class DescribedDelegationToken(Struct):
    principal_type: str = field("string")
    principal_name: str = field("string")
    token_requester_principal_type: str = field("string", versions="3+")
    token_requester_principal_name: str = field("string", versions="3+")
    issue_timestamp: int = field("int64")
    expiry_timestamp: int = field("int64")
    max_timestamp: int = field("int64")
    token_id: str = field("string")
    hmac: bytes = field("bytes")
    renewers: list[DescribedDelegationTokenRenewer] = field([DescribedDelegationTokenRenewer])


@message(key=41, versions="0-3", flexible="2+")
class DescribeDelegationTokenResponse(Message):
    error_code: int = field("int16")
    tokens: list[DescribedDelegationToken] = field([DescribedDelegationToken])
    throttle_time_ms: int = field("int32")
