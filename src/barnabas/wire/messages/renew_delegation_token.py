"""RenewDelegationToken (API key 39): prolong a delegation token."""

from __future__ import annotations

from barnabas.wire.schema import Message, field, message


@message(key=39, versions="0-2", flexible="2+")
class RenewDelegationTokenRequest(Message):
    hmac: bytes = field("bytes")
    renew_period_ms: int = field("int64")


@message(key=39, versions="0-2", flexible="2+")
class RenewDelegationTokenResponse(Message):
    error_code: int = field("int16")
    expiry_timestamp_ms: int = field("int64")
    throttle_time_ms: int = field("int32")
