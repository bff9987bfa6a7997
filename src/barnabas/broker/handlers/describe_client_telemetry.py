"""DescribeClientTelemetry: the clients that push metrics to this broker, and what they pushed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.security.authorizer import Operation
from barnabas.telemetry.clients import Instance, Series
from barnabas.wire.messages.describe_client_telemetry import (
    ClientMetric,
    DescribeClientTelemetryRequest,
    DescribeClientTelemetryResponse,
    MetricAttribute,
    TelemetryClient,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(
    broker: Broker, request: Request[DescribeClientTelemetryRequest]
) -> DescribeClientTelemetryResponse:
    """Describe each client, and of its numbers those whose name has the prefix."""
    broker.check_cluster(request.session, Operation.DESCRIBE)
    prefix = request.body.metric_prefix
    return DescribeClientTelemetryResponse(
        error_message=None,
        clients=[_client(each, prefix) for each in broker.telemetry.clients()],
    )


def refuse(
    request: DescribeClientTelemetryRequest, code: ErrorCode, message: str | None
) -> DescribeClientTelemetryResponse:
    """Answer with an error."""
    return DescribeClientTelemetryResponse(error_code=code, error_message=message)


def _client(instance: Instance, prefix: str | None) -> TelemetryClient:
    client = instance.client
    series = list(instance.series.values()) if prefix is not None else []
    return TelemetryClient(
        client_instance_id=instance.instance_id,
        client_id=client.client_id,
        software_name=client.software_name,
        software_version=client.software_version,
        client_host=client.host,
        subscribed_metrics=list(instance.metrics),
        push_interval_ms=instance.interval_ms,
        first_seen_ms=instance.first_ms,
        last_push_ms=instance.push_time_ms,
        pushes=instance.pushes,
        dropped=instance.dropped,
        terminating=instance.terminating,
        metrics=[_metric(each) for each in series if each.name.startswith(prefix or "")],
    )


def _metric(series: Series) -> ClientMetric:
    return ClientMetric(
        name=series.name,
        unit=series.unit,
        kind=series.kind,
        attributes=[MetricAttribute(key=key, value=value) for key, value in series.attributes],
        value=series.value,
    )
