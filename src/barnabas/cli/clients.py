"""`barnabas clients`: the clients of a cluster as they see themselves, by the metrics they push."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from datetime import UTC, datetime

from barnabas.admin.client_telemetry import (
    PushedMetric,
    TelemetryClient,
    describe_client_telemetry,
)
from barnabas.cli.arguments import add_action, index
from barnabas.cli.output import print_json, print_table
from barnabas.cli.session import run
from barnabas.model.errors import RequestError
from barnabas.model.ids import uuid_text

PREFIX = "org.apache.kafka."
LATENCIES = (
    "producer.node.request.latency.avg",
    "producer.request.latency.avg",
    "consumer.fetch.manager.fetch.latency.avg",
)
"""What a client says about the brokers; a fetch waits for records, too."""
QUEUED = ("producer.record.queue.time.avg",)
ASSIGNED = ("consumer.coordinator.assigned.partitions",)
COLUMNS = (
    "client",
    "host",
    "software",
    "broker",
    "pushed",
    "series",
    "latency",
    "queued",
    "partitions",
)
NOTHING = """\
no client has pushed metrics; subscribe to some, and clients that can push do so:
  barnabas configs alter --client-metrics all --set metrics=* --set interval.ms=10000"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of all actions."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    metrics = add_action(
        actions,
        "metrics",
        "show the clients that push metrics (KIP-714), or all numbers of some",
        _metrics,
        "  barnabas clients metrics\n"
        "  barnabas clients metrics web-1\n"
        "  barnabas clients metrics web-1 --prefix org.apache.kafka.producer. --json\n\n"
        "Clients push what a client-metrics resource asks them for:\n"
        "  barnabas configs alter --client-metrics all --set metrics=* --set interval.ms=10000",
    )
    metrics.add_argument(
        "clients",
        metavar="CLIENT",
        nargs="*",
        help="show all numbers of the clients with this client id or client instance id",
    )
    metrics.add_argument(
        "--prefix", metavar="TEXT", default="", help="only metrics whose name begins with this"
    )
    metrics.add_argument(
        "--broker", metavar="ID", type=index, action="append", help="only this; may be repeated"
    )


def _metrics(arguments: argparse.Namespace) -> int:
    found = run(
        arguments,
        lambda client: describe_client_telemetry(
            client, arguments.broker, metric_prefix=arguments.prefix
        ),
    )
    clients: list[tuple[int, TelemetryClient]] = []
    failed: dict[int, RequestError] = {}
    for broker, known in found.items():
        if isinstance(known, RequestError):
            failed[broker] = known
        else:
            clients += [(broker, each) for each in known]
    wanted = set(arguments.clients)
    if wanted:
        clients = [
            (broker, each)
            for broker, each in clients
            if {each.client_id, uuid_text(each.instance_id)} & wanted
        ]
    clients.sort(key=lambda found: (found[1].client_id, found[0], found[1].first_seen_ms))
    if arguments.json:
        errors = [{"broker": broker, "error": str(each)} for broker, each in failed.items()]
        print_json([_as_json(broker, each) for broker, each in clients] + errors)
    else:
        _show(clients, each_number=bool(wanted))
        for broker, failure in failed.items():
            print(f"broker {broker}: {failure}")
    missing = wanted and not clients
    if missing and not arguments.json:
        print(f"no broker knows a client {', '.join(sorted(wanted))}")
    return 1 if failed or missing else 0


def _show(clients: list[tuple[int, TelemetryClient]], *, each_number: bool) -> None:
    if each_number:
        for _, client in clients:
            print_table(
                ["metric", "attributes", "value", "unit", "kind"],
                [_row(metric) for metric in _ordered(client.metrics)],
                title=f"{client.client_id} ({uuid_text(client.instance_id)})",
            )
        return
    if not any(client.pushes for _, client in clients):
        print(NOTHING)
    if clients:
        now_ms = time.time() * 1000
        print_table(
            COLUMNS,
            [
                [
                    client.client_id,
                    client.host,
                    f"{client.software_name} {client.software_version}",
                    broker,
                    _ago(client.last_push_ms, now_ms),
                    len(client.metrics),
                    _milliseconds(client, LATENCIES),
                    _milliseconds(client, QUEUED),
                    _highest(client, ASSIGNED),
                ]
                for broker, client in clients
            ],
        )


def _row(metric: PushedMetric) -> list[object]:
    attributes = " ".join(f"{key}={value}" for key, value in metric.attributes.items())
    return [metric.name, attributes, f"{metric.value:.6g}", metric.unit, metric.kind]


def _ordered(metrics: Iterable[PushedMetric]) -> list[PushedMetric]:
    return sorted(metrics, key=lambda each: (each.name, sorted(each.attributes.items())))


def _ago(ms: int, now_ms: float) -> str | None:
    return None if ms < 0 else f"{max(0.0, now_ms - ms) / 1000:.0f} s ago"


def _highest(client: TelemetryClient, names: Iterable[str]) -> int | None:
    value = _value(client, names)
    return None if value is None else int(value)


def _milliseconds(client: TelemetryClient, names: Iterable[str]) -> str | None:
    value = _value(client, names)
    return None if value is None else f"{value:.4g} ms"


def _value(client: TelemetryClient, names: Iterable[str]) -> float | None:
    """Return the highest value of the first of some metrics that the client has."""
    for name in names:
        values = [each.value for each in client.metrics if each.name == PREFIX + name]
        if values:
            return max(values)
    return None


def _as_json(broker: int, client: TelemetryClient) -> dict[str, object]:
    return {
        "broker": broker,
        "client_id": client.client_id,
        "client_instance_id": uuid_text(client.instance_id),
        "host": client.host,
        "software_name": client.software_name,
        "software_version": client.software_version,
        "subscribed": list(client.subscribed),
        "push_interval_ms": client.push_interval_ms,
        "first_seen": _time(client.first_seen_ms),
        "last_push": _time(client.last_push_ms),
        "pushes": client.pushes,
        "dropped": client.dropped,
        "terminating": client.terminating,
        "metrics": [
            {
                "name": each.name,
                "attributes": dict(each.attributes),
                "value": each.value,
                "unit": each.unit,
                "kind": each.kind,
            }
            for each in _ordered(client.metrics)
        ],
    }


def _time(ms: int) -> str | None:
    if ms < 0:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
