"""Clients as they see themselves: what they push of their metrics."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.otlp import GAUGE, metric, metrics_data, number
from tests.unit.console.site import SECURED, Site, text_of

from barnabas.model.ids import ZERO_UUID, uuid_text
from barnabas.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from barnabas.wire.messages.push_telemetry import PushTelemetryRequest

LATENCY = "org.apache.kafka.producer.node.request.latency.avg"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A console with log-ins."""
    with Site(tmp_path_factory.mktemp("data"), SECURED) as running:
        yield running
        running.serving.lines.clear()


def push(site: Site) -> str:
    """Act as a client that pushes two numbers; return its instance id."""
    wire = site.serving.connect()
    wanted = wire.ask(GetTelemetrySubscriptionsRequest(client_instance_id=ZERO_UUID), 0)
    data = metrics_data(
        metric(LATENCY, GAUGE, number(12.5, {"node_id": "0"})),
        metric("org.apache.kafka.producer.<b>", GAUGE, number(7.0)),
    )
    answer = wire.ask(
        PushTelemetryRequest(
            client_instance_id=wanted.client_instance_id,
            subscription_id=wanted.subscription_id,
            metrics=data,
        ),
        0,
    )
    assert answer.error_code == 0
    return uuid_text(wanted.client_instance_id)


def test_a_client_that_pushes_is_listed_with_its_numbers(site: Site) -> None:
    assert "No client has pushed metrics, or you may not see them." in site.page("/clients")
    fields = {"type": "client-metrics", "name": "all", "option": "metrics", "value": "*"}
    site.do("/configs/alter", **fields, operation="set")
    instance = push(site)
    [row] = site.get("/clients.json").json()["rows"]
    assert (row["name"], row["broker"], row["pushes"], row["send_ms"]) == ("test", 0, 1, 12.5)
    page = site.page("/clients?q=TES")
    assert f'href="/clients/{instance}"' in page
    assert site.get("/clients.json?q=absent").json()["rows"] == []
    page = site.page(f"/clients/{instance}")
    assert "<b>" not in page.partition("<main")[2]
    text = text_of(page)
    assert f"{LATENCY} node_id=0 12.5" in text
    assert f"barnabas clients metrics {instance}" in text
    rows = site.get(f"/clients/{instance}/metrics.json").json()["rows"]
    assert len(rows) == 2
    assert site.get("/clients/AAAAAAAAAAAAAAAAAAAAAA").status_code == 404


def test_a_user_without_rights_sees_no_clients(secured: Site) -> None:
    secured.log_in("alice", "alice-secret")
    page = text_of(secured.page("/clients"))
    assert "No client has pushed" in page or "Not known." in page
    assert secured.get("/clients.json").json()["rows"] == []
