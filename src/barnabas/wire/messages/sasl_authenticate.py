"""SaslAuthenticate (API key 36): one step of a SASL exchange."""

from __future__ import annotations

from barnabas.wire.schema import Message, field, message


@message(key=36, versions="0-2", flexible="2+")
class SaslAuthenticateRequest(Message):
    auth_bytes: bytes = field("bytes")


@message(key=36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse(Message):
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)
    auth_bytes: bytes = field("bytes")
    session_lifetime_ms: int = field("int64", versions="1+", ignorable=True)
