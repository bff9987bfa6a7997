"""GetTelemetrySubscriptions: which metrics a client should push, how often, and compressed how."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.telemetry.clients import ACCEPTED
from barnabas.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(
    broker: Broker, request: Request[GetTelemetrySubscriptionsRequest]
) -> GetTelemetrySubscriptionsResponse:
    """Look up what the client is subscribed to."""
    instance = broker.telemetry.subscribe(request, request.body.client_instance_id)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance.instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=list(ACCEPTED),
        push_interval_ms=instance.interval_ms,
        telemetry_max_bytes=broker.options.telemetry_max_bytes,
        delta_temporality=True,
        requested_metrics=list(instance.metrics),
    )


def refuse(
    request: GetTelemetrySubscriptionsRequest, code: ErrorCode, message: str | None
) -> GetTelemetrySubscriptionsResponse:
    """Answer with an error."""
    return GetTelemetrySubscriptionsResponse(error_code=code)
