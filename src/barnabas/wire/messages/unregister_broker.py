"""UnregisterBroker (API key 64): forget a broker that will not come back."""

from __future__ import annotations

from barnabas.wire.schema import Message, field, message


@message(key=64, versions="0", flexible="0+")
class UnregisterBrokerRequest(Message):
    broker_id: int = field("int32")


@message(key=64, versions="0", flexible="0+")
class UnregisterBrokerResponse(Message):
    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)
