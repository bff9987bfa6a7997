"""PushTelemetry (API key 72): metrics pushed by a client (KIP-714)."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.schema import Message, field, message


@message(key=72, versions="0", flexible="0+")
class PushTelemetryRequest(Message):
    client_instance_id: Uuid = field("uuid")
    subscription_id: int = field("int32")
    terminating: bool = field("bool")
    compression_type: int = field("int8")
    metrics: bytes = field("bytes")


@message(key=72, versions="0", flexible="0+")
class PushTelemetryResponse(Message):
    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
