"""PushTelemetry: a client's own metrics, as OTLP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


async def handle(broker: Broker, request: Request[PushTelemetryRequest]) -> PushTelemetryResponse:
    """Keep the numbers of a push."""
    body = request.body
    await broker.telemetry.push(
        request,
        body.client_instance_id,
        body.subscription_id,
        body.compression_type,
        body.metrics,
        terminating=body.terminating,
    )
    return PushTelemetryResponse()


def refuse(
    request: PushTelemetryRequest, code: ErrorCode, message: str | None
) -> PushTelemetryResponse:
    """Answer with an error."""
    return PushTelemetryResponse(error_code=code)
