"""DescribeClientTelemetry (API key 30011): the metrics that clients have pushed to one broker.

Not one of Kafka's: only brokers of this kind serve it, and they list it to their own kind alone.
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.schema import Message, Struct, field, message, struct


@message(key=30011, versions="0", flexible="0+")
class DescribeClientTelemetryRequest(Message):
    metric_prefix: str | None = field("string", nullable=True)
    """Which series to describe; null for none, empty for all."""


@struct
class MetricAttribute(Struct):
    key: str = field("string")
    value: str = field("string")


@struct
class ClientMetric(Struct):
    name: str = field("string")
    unit: str = field("string")
    kind: int = field("int8")
    attributes: list[MetricAttribute] = field([MetricAttribute])
    value: float = field("float64")


@struct
class TelemetryClient(Struct):
    client_instance_id: Uuid = field("uuid")
    client_id: str = field("string")
    software_name: str = field("string")
    software_version: str = field("string")
    client_host: str = field("string")
    subscribed_metrics: list[str] = field(["string"])
    push_interval_ms: int = field("int32")
    first_seen_ms: int = field("int64", default=-1)
    last_push_ms: int = field("int64", default=-1)
    pushes: int = field("int64")
    dropped: int = field("int64")
    terminating: bool = field("bool")
    metrics: list[ClientMetric] = field([ClientMetric])


@message(key=30011, versions="0", flexible="0+")
class DescribeClientTelemetryResponse(Message):
    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)
    clients: list[TelemetryClient] = field([TelemetryClient])
