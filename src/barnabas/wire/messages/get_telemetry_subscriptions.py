"""GetTelemetrySubscriptions (API key 71): which metrics a client should push (KIP-714)."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.schema import Message, field, message


@message(key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest(Message):
    client_instance_id: Uuid = field("uuid")


@message(key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse(Message):
    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    client_instance_id: Uuid = field("uuid")
    subscription_id: int = field("int32")
    accepted_compression_types: list[int] = field(["int8"])
    push_interval_ms: int = field("int32")
    telemetry_max_bytes: int = field("int32")
    delta_temporality: bool = field("bool")
    requested_metrics: list[str] = field(["string"])
