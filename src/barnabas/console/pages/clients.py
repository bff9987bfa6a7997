"""Clients as they see themselves: the metrics that they push to their brokers (KIP-714)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.admin.client_telemetry import TelemetryClient, describe_client_telemetry
from barnabas.console.context import Context
from barnabas.console.listing import Column, Listing, Row, both, page_of, respond
from barnabas.console.live import lively
from barnabas.console.pages.topic import failing
from barnabas.console.rendering import counted
from barnabas.console.segments import segment
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import Uuid, uuid_text

ASK_MS = 3_000
SENDS = "org.apache.kafka.producer.node.request.latency.avg"
FETCHES = "org.apache.kafka.consumer.fetch.manager.fetch.latency.avg"
SUBSCRIBE = "barnabas configs alter --client-metrics all --set metrics=* --set interval.ms=10000"

COLUMNS = (
    Column("name", "Client id", sorts=True, link="href"),
    Column("software", "Software", sorts=True),
    Column("host", "Host", sorts=True),
    Column("broker", "Broker", "number", sorts=True),
    Column("pushes", "Pushes", "number", sorts=True),
    Column("last_push_ms", "Last push", "time", sorts=True),
    Column("send_ms", "Requests took", "exact"),
    Column("fetch_ms", "Fetches took", "exact"),
)
METRIC_COLUMNS = (
    Column("metric", "Metric", sorts=True),
    Column("attributes", "Attributes"),
    Column("value", "Value", "number"),
    Column("unit", "Unit"),
    Column("kind", "Kind"),
)

Answers = Mapping[int, list[TelemetryClient] | RequestError]


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def clients(request: Request) -> Response:
        q = request.query_params.get("q", "")
        sends, fetches = await asyncio.gather(
            failing(asked(request, SENDS)), failing(asked(request, FETCHES))
        )
        rows, missing = [], []
        if isinstance(sends, BarnabasError):
            missing.append(str(sends))
        else:
            took = {} if isinstance(fetches, BarnabasError) else _values(fetches)
            missing = [
                f"Broker {broker_id} did not say its clients: {each}"
                for broker_id, each in sends.items()
                if isinstance(each, RequestError)
            ]
            own = _values(sends)
            rows = [
                _row(broker_id, each, own.get(each.instance_id), took.get(each.instance_id))
                for broker_id, each in _clients(sends)
                if q.lower() in each.client_id.lower()
            ]
        listing = Listing(
            "Clients",
            "/clients",
            COLUMNS,
            rows,
            intro="Clients that push their own metrics to the brokers (KIP-714), as they see "
            "themselves. A client metrics resource asks them for some:",
            caption=counted(len(rows), "client"),
            empty="No client has pushed metrics, or you may not see them.",
            command=SUBSCRIBE,
            q=q,
            searches=True,
            missing=missing,
            live=True,
        )
        page_of(rows, listing, request, name="id", default="name")
        return respond(context, request, listing)

    async def client(request: Request) -> Response:
        wanted = request.path_params["id"]
        found = next(
            (
                each
                for _, each in _clients(await asked(request, ""))
                if uuid_text(each.instance_id) == wanted
            ),
            None,
        )
        if found is None:
            raise HTTPException(404, "No broker knows a client of this instance id any longer.")
        rows: list[Row] = [
            {
                "name": f"{each.name} {at:06}",
                "metric": each.name,
                "attributes": ", ".join(f"{key}={text}" for key, text in each.attributes.items()),
                "value": each.value,
                "unit": each.unit,
                "kind": each.kind,
            }
            for at, each in enumerate(found.metrics)
        ]
        listing = Listing(
            f"{found.client_id}",
            f"/clients/{segment(wanted)}/metrics",
            METRIC_COLUMNS,
            rows,
            page=f"/clients/{segment(wanted)}",
            intro=f"{found.software_name} {found.software_version} at {found.host}, as it sees "
            "itself.",
            caption=f"{len(rows):,} series, as of its last push",
            empty="It has not pushed any metrics yet.",
            command=f"barnabas clients metrics {wanted}",
        )
        page_of(rows, listing, request, page_rows=500)
        return respond(context, request, listing)

    async def asked(request: Request, prefix: str) -> Answers:
        return await describe_client_telemetry(
            context.session(request).client,
            [each.broker_id for each in context.window.brokers()],
            metric_prefix=prefix,
            timeout_ms=ASK_MS,
        )

    one = "/clients/{id:segment}"
    return [
        *(Route(path, lively(context, clients)) for path in both("/clients")),
        Route(one, client),
        *(Route(path, client) for path in both(f"{one}/metrics")),
    ]


def _clients(answers: Answers) -> Iterator[tuple[int, TelemetryClient]]:
    for broker_id, clients in answers.items():
        if not isinstance(clients, RequestError):
            for each in clients:
                yield broker_id, each


def _values(answers: Answers) -> dict[Uuid, float]:
    """Return the highest value that each client has of the metric that was asked for."""
    return {
        each.instance_id: max(metric.value for metric in each.metrics)
        for _, each in _clients(answers)
        if each.metrics
    }


def _row(
    broker_id: int, client: TelemetryClient, send_ms: float | None, fetch_ms: float | None
) -> Row:
    instance = uuid_text(client.instance_id)
    return {
        "id": f"{client.client_id} {instance} {broker_id}",
        "name": client.client_id,
        "href": f"/clients/{segment(instance)}",
        "software": f"{client.software_name} {client.software_version}",
        "host": client.host,
        "broker": broker_id,
        "pushes": client.pushes,
        "last_push_ms": client.last_push_ms if client.last_push_ms >= 0 else None,
        "send_ms": send_ms,
        "fetch_ms": fetch_ms,
    }
