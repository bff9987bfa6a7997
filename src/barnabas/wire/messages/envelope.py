"""Envelope (API key 58): a client's request, forwarded by a broker to the controller."""

from __future__ import annotations

from barnabas.wire.schema import Message, field, message


@message(key=58, versions="0", flexible="0+")
class EnvelopeRequest(Message):
    request_data: bytes = field("bytes")
    request_principal: bytes | None = field("bytes", nullable=True)
    client_host_address: bytes = field("bytes")


@message(key=58, versions="0", flexible="0+")
class EnvelopeResponse(Message):
    response_data: bytes | None = field("bytes", nullable=True, default=None)
    error_code: int = field("int16")
