"""SaslHandshake (API key 17): choose a SASL mechanism."""

from __future__ import annotations

from barnabas.wire.schema import Message, field, message


@message(key=17, versions="0-1")
class SaslHandshakeRequest(Message):
    mechanism: str = field("string")


@message(key=17, versions="0-1")
class SaslHandshakeResponse(Message):
    error_code: int = field("int16")
    mechanisms: list[str] = field(["string"])
