"""The metrics that clients push to brokers (KIP-714), as the brokers hold them.

for broker, clients in (await describe_client_telemetry(client)).items():
    ...
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.admin.brokers import ask_brokers
from barnabas.admin.failures import check
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.model.errors import RequestError
from barnabas.model.ids import Uuid
from barnabas.wire.messages.describe_client_telemetry import (
    DescribeClientTelemetryRequest,
    DescribeClientTelemetryResponse,
)

KINDS = ("gauge", "sum", "sum")
"""What the numbers on the wire mean; the broker has added differences up."""


@dataclass(frozen=True, slots=True)
class PushedMetric:
    """The newest value of one series."""

    name: str
    unit: str
    kind: str
    """`gauge`, or `sum` since the client's first push to this broker."""
    attributes: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class TelemetryClient:
    """One client that pushes metrics, or has asked which."""

    instance_id: Uuid
    client_id: str
    software_name: str
    software_version: str
    host: str
    subscribed: tuple[str, ...]
    """Prefixes of the metrics that it is asked for; `*` for all, empty for none."""
    push_interval_ms: int
    first_seen_ms: int
    last_push_ms: int
    """-1 if it has not pushed yet."""
    pushes: int
    dropped: int
    """Numbers that the broker left out because there were too many series."""
    terminating: bool
    metrics: tuple[PushedMetric, ...]


async def describe_client_telemetry(
    client: ClusterClient,
    broker_ids: Iterable[int] | None = None,
    *,
    metric_prefix: str | None = "",
    timeout_ms: float | None = None,
) -> dict[int, list[TelemetryClient] | RequestError]:
    """Return the clients that each broker knows; None is all live brokers.

    Their metrics are those whose name has the prefix; none if that is None. Apache Kafka passes
    what clients push to a plug-in, and responds with UNSUPPORTED_VERSION.
    """
    request = DescribeClientTelemetryRequest(metric_prefix=metric_prefix)

    async def ask(_: int, connection: Connection) -> list[TelemetryClient]:
        response: DescribeClientTelemetryResponse = await connection.send(request)
        check(response.error_code, "metrics of clients", response.error_message)
        return [
            TelemetryClient(
                each.client_instance_id,
                each.client_id,
                each.software_name,
                each.software_version,
                each.client_host,
                tuple(each.subscribed_metrics),
                each.push_interval_ms,
                each.first_seen_ms,
                each.last_push_ms,
                each.pushes,
                each.dropped,
                each.terminating,
                tuple(
                    PushedMetric(
                        metric.name,
                        metric.unit,
                        KINDS[metric.kind],
                        {pair.key: pair.value for pair in metric.attributes},
                        metric.value,
                    )
                    for metric in each.metrics
                ),
            )
            for each in response.clients
        ]

    return await ask_brokers(client, broker_ids, ask, timeout_ms=timeout_ms)
