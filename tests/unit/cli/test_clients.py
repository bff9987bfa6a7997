"""`barnabas clients`, and the resources that ask clients for their metrics."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from tests.otlp import GAUGE, SUM, metric, metrics_data, number

from barnabas import KafkaAdminClient
from barnabas.cli.main import main
from barnabas.model.ids import ZERO_UUID, uuid_text
from barnabas.testing import Cluster
from barnabas.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from barnabas.wire.messages.push_telemetry import PushTelemetryRequest

LATENCY = "org.apache.kafka.producer.node.request.latency.avg"
ASSIGNED = "org.apache.kafka.consumer.coordinator.assigned.partitions"


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Cluster() as cluster:
        yield cluster.bootstrap


@pytest.fixture
def barnabas(
    bootstrap: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Run a command line against the broker; return what it printed."""
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", bootstrap)

    def run(line: str, code: int = 0) -> str:
        assert main(line.split()) == code, capsys.readouterr()
        return capsys.readouterr().out

    return run


def push(bootstrap: str, client_id: str, *metrics: bytes) -> GetTelemetrySubscriptionsResponse:
    """Act as a client that pushes: subscribe, and push once if there is something."""
    with KafkaAdminClient(bootstrap_servers=bootstrap, client_id=client_id) as admin:

        async def ask() -> GetTelemetrySubscriptionsResponse:
            connection = await admin.client.connection()
            wanted: GetTelemetrySubscriptionsResponse = await connection.send(
                GetTelemetrySubscriptionsRequest(client_instance_id=ZERO_UUID)
            )
            if metrics:
                request = PushTelemetryRequest(
                    client_instance_id=wanted.client_instance_id,
                    subscription_id=wanted.subscription_id,
                    metrics=metrics_data(*metrics),
                )
                assert (await connection.send(request)).error_code == 0
            return wanted

        return admin.run(ask)


def test_subscriptions_are_options_of_a_resource(barnabas: Callable[..., str]) -> None:
    alter = "configs alter --client-metrics watch"
    out = barnabas(f"{alter} --set metrics=a.,b. --set interval.ms=60000")
    assert out == "options of client metrics watch are changed\n"
    described = json.loads(barnabas("configs describe --client-metrics watch --all --json"))
    assert {each["name"]: (each["value"], each["source"]) for each in described} == {
        "metrics": ("a.,b.", "client_metrics"),
        "interval.ms": ("60000", "client_metrics"),
        "match": ("", "default"),
    }
    assert "60000" in barnabas("configs describe --client-metrics watch")
    barnabas(f"{alter} --set interval.ms=1", code=1)
    barnabas(f"{alter} --delete metrics --delete interval.ms")
    assert barnabas("configs describe --client-metrics watch --all --json") == "[]\n"


def test_clients_and_their_numbers(bootstrap: str, barnabas: Callable[..., str]) -> None:
    assert "no client has pushed metrics" in barnabas("clients metrics")
    barnabas("configs alter --client-metrics all --set metrics=*")
    push(bootstrap, "idle")
    listed = barnabas("clients metrics")
    assert "no client has pushed metrics" in listed
    assert "idle" in listed
    wanted = push(
        bootstrap,
        "web",
        metric(LATENCY, GAUGE, number(2.5, {"node.id": 1}), number(7.25, {"node.id": 2})),
        metric(ASSIGNED, GAUGE, number(3)),
        metric("other", SUM, number(4), unit="s"),
    )
    lines = barnabas("clients metrics").splitlines()
    (row,) = [line.split() for line in lines if line.startswith("web")]
    assert row[1] == "127.0.0.1"
    assert row[2] == "barnabas"
    assert row[-6:] == ["ago", "4", "7.25", "ms", "-", "3"]
    shown = barnabas("clients metrics web")
    assert f"web ({uuid_text(wanted.client_instance_id)})" in shown
    assert "node.id=2" in shown
    by_id = barnabas(f"clients metrics {uuid_text(wanted.client_instance_id)} --prefix other")
    assert "other" in by_id
    assert LATENCY not in by_id
    (client,) = json.loads(barnabas("clients metrics web --json"))
    assert client["client_id"] == "web"
    assert client["pushes"] == 1
    assert [each["name"] for each in client["metrics"]] == [ASSIGNED, LATENCY, LATENCY, "other"]
    assert client["metrics"][3] == {
        "name": "other",
        "attributes": {},
        "value": 4.0,
        "unit": "s",
        "kind": "sum",
    }
    assert "no broker knows a client nobody" in barnabas("clients metrics nobody", code=1)
    out = barnabas("clients metrics --broker 77 --json", code=1)
    assert json.loads(out)[0]["broker"] == 77
