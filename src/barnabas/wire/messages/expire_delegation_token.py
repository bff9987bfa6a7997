"""ExpireDelegationToken (API key 40): end a delegation token, now or later."""

from __future__ import annotations

from barnabas.wire.schema import Message, field, message


@message(key=40, versions="0-2", flexible="2+")
class ExpireDelegationTokenRequest(Message):
    hmac: bytes = field("bytes")
    expiry_time_period_ms: int = field("int64")


@message(key=40, versions="0-2", flexible="2+")
class ExpireDelegationTokenResponse(Message):
    error_code: int = field("int16")
    expiry_timestamp_ms: int = field("int64")
    throttle_time_ms: int = field("int32")
