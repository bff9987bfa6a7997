"""Clients' metrics through a real broker: subscriptions, pushes, and what it then knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.otlp import GAUGE, SUM, metric, metrics_data, number
from tests.unit.broker.handlers.test_configs import change, describe, replace
from tests.unit.broker.serving import Serving, Wire, wait_for

from barnabas.broker.network import client_telemetry
from barnabas.metrics.catalogue import client_telemetry as catalogue
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import ZERO_UUID, Uuid
from barnabas.records.compression import Codec, compress
from barnabas.testing import Cluster
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.describe_client_telemetry import DescribeClientTelemetryRequest
from barnabas.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.wire.messages.push_telemetry import PushTelemetryRequest

CLIENT_METRICS = 16
SET, DELETE, APPEND, SUBTRACT = range(4)
OWN, DEFAULT = 7, 5
TELEMETRY_KEYS = {71, 72}


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    with Serving(tmp_path, {"telemetry.max.bytes": 20_000}) as started:
        yield started


@pytest.fixture
def wire(serving: Serving) -> Iterator[Wire]:
    with serving.connect() as connected:
        yield connected


def watch(wire: Wire, name: str = "watch", **values: str) -> Any:
    given = {"metrics": "*", "interval.ms": "100", **values}
    return change(wire, CLIENT_METRICS, name, *((key, SET, text) for key, text in given.items()))


def get(wire: Wire, instance_id: Uuid = ZERO_UUID) -> Any:
    return wire.ask(GetTelemetrySubscriptionsRequest(client_instance_id=instance_id), 0)


def push(wire: Wire, subscription: Any, metrics: bytes, codec: Codec = Codec.NONE) -> int:
    request = PushTelemetryRequest(
        client_instance_id=subscription.client_instance_id,
        subscription_id=subscription.subscription_id,
        terminating=True,
        compression_type=codec,
        metrics=metrics,
    )
    code: int = wire.ask(request, 0).error_code
    return code


def clients(wire: Wire, prefix: str | None = "") -> Any:
    response = wire.ask(DescribeClientTelemetryRequest(metric_prefix=prefix), 0)
    assert response.error_code == 0
    return response.clients


def listed(wire: Wire) -> list[str]:
    found = wire.ask(ListConfigResourcesRequest(), 0).config_resources
    return [each.resource_name for each in found]


def test_resources_are_made_changed_and_gone(serving: Serving, wire: Wire) -> None:
    assert watch(wire, match="client_id=web").error_code == 0
    assert listed(wire) == ["watch"]
    found = {each.name: each for each in describe(wire, CLIENT_METRICS, "watch").configs}
    assert {name: (each.value, each.config_source) for name, each in found.items()} == {
        "metrics": ("*", OWN),
        "interval.ms": ("100", OWN),
        "match": ("client_id=web", OWN),
    }
    more = change(wire, CLIENT_METRICS, "watch", ("match", APPEND, "client_source_port=1"))
    assert more.error_code == 0
    assert change(wire, CLIENT_METRICS, "watch", ("interval.ms", DELETE, None)).error_code == 0
    found = {each.name: each for each in describe(wire, CLIENT_METRICS, "watch").configs}
    assert found["match"].value == "client_id=web,client_source_port=1"
    assert (found["interval.ms"].value, found["interval.ms"].config_source) == ("300000", DEFAULT)
    serving.stop()
    serving.start()
    with serving.connect() as again:
        assert listed(again) == ["watch"]
        assert replace(again, CLIENT_METRICS, "watch", {"metrics": "a"}).error_code == 0
        gone = change(again, CLIENT_METRICS, "watch", ("metrics", DELETE, None))
        assert gone.error_code == 0
        assert listed(again) == []
        assert describe(again, CLIENT_METRICS, "watch").configs == []


@pytest.mark.parametrize(
    ("name", "option", "value", "code"),
    [
        ("", "metrics", "*", ErrorCode.INVALID_REQUEST),
        ("w", "interval.ms", "99", ErrorCode.INVALID_REQUEST),
        ("w", "interval", "100", ErrorCode.INVALID_REQUEST),
        ("w", "match", "client_id", ErrorCode.INVALID_CONFIG),
    ],
)
def test_invalid_resources(wire: Wire, name: str, option: str, value: str, code: int) -> None:
    assert change(wire, CLIENT_METRICS, name, (option, SET, value)).error_code == code
    assert listed(wire) == []
    assert describe(wire, CLIENT_METRICS, "").error_code == ErrorCode.INVALID_REQUEST


def test_a_dry_run_changes_nothing(wire: Wire) -> None:
    dry = change(wire, CLIENT_METRICS, "watch", ("metrics", SET, "*"), dry_run=True)
    assert dry.error_code == 0
    assert listed(wire) == []


def test_a_client_learns_what_to_push(wire: Wire) -> None:
    nothing = get(wire)
    assert nothing.error_code == 0
    assert nothing.requested_metrics == []
    assert nothing.push_interval_ms == 300_000
    watch(wire)
    wanted = get(wire, nothing.client_instance_id)
    assert wanted.requested_metrics == ["*"]
    assert wanted.push_interval_ms == 100
    assert wanted.accepted_compression_types == [4, 3, 1, 2]
    assert wanted.telemetry_max_bytes == 20_000
    assert wanted.delta_temporality
    assert wanted.client_instance_id == nothing.client_instance_id
    again = get(wire, nothing.client_instance_id)
    assert again.error_code in (0, ErrorCode.THROTTLING_QUOTA_EXCEEDED), "100 ms may have passed"
    watch(wire, match="client_id=no-such-client")
    assert get(wire, nothing.client_instance_id).requested_metrics == []


def test_an_impatient_client_is_throttled(wire: Wire) -> None:
    watch(wire, **{"interval.ms": "3600000"})
    first = get(wire)
    again = get(wire, first.client_instance_id)
    assert again.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


@pytest.mark.parametrize("codec", list(Codec))
def test_pushed_numbers_are_kept(serving: Serving, wire: Wire, codec: Codec) -> None:
    watch(wire)
    subscription = get(wire)
    data = metrics_data(
        metric("org.a", GAUGE, number(2.5, {"node.id": 1}), unit="ms"), metric("b", SUM, number(3))
    )
    assert push(wire, subscription, compress(codec, data), codec) == 0
    (client,) = clients(wire, "org.")
    assert client.client_instance_id == subscription.client_instance_id
    assert client.client_host == "127.0.0.1"
    assert (client.subscribed_metrics, client.push_interval_ms) == (["*"], 100)
    assert (client.pushes, client.terminating) == (1, True)
    assert 0 < client.first_seen_ms <= client.last_push_ms
    (shown,) = client.metrics
    assert (shown.name, shown.unit, shown.kind, shown.value) == ("org.a", "ms", 0, 2.5)
    assert [(each.key, each.value) for each in shown.attributes] == [("node.id", "1")]
    assert [each.name for each in clients(wire)[0].metrics] == ["org.a", "b"]
    assert clients(wire, None)[0].metrics == []
    metrics = serving.broker.metrics
    assert serving.inside(lambda: metrics.value(catalogue.INSTANCES)) == 1
    assert serving.inside(lambda: metrics.value(catalogue.PUSHING)) == 1
    assert serving.inside(lambda: metrics.value(catalogue.PUSHES, "ok")) == 1


def test_a_large_push_is_decoded_by_a_thread(wire: Wire) -> None:
    watch(wire)
    points = [number(float(n), {"partition": n}) for n in range(900)]
    data = metrics_data(metric("m", GAUGE, *points))
    assert len(data) > client_telemetry.ON_LOOP_BYTES_MAX
    packed = compress(Codec.ZSTD, data)
    assert len(packed) < client_telemetry.ON_LOOP_BYTES_MAX
    assert push(wire, get(wire), packed, Codec.ZSTD) == 0
    assert len(clients(wire)[0].metrics) == 900


@pytest.mark.parametrize(
    ("data", "codec", "code"),
    [
        (b"garbage" * 9, Codec.NONE, ErrorCode.INVALID_RECORD),
        (b"garbage" * 9, Codec.ZSTD, ErrorCode.INVALID_RECORD),
        (bytes(20_001), Codec.NONE, ErrorCode.TELEMETRY_TOO_LARGE),
        (compress(Codec.GZIP, bytes(10_000_000)), Codec.GZIP, ErrorCode.TELEMETRY_TOO_LARGE),
        (compress(Codec.ZSTD, bytes(10_000_000)), Codec.ZSTD, ErrorCode.TELEMETRY_TOO_LARGE),
        (compress(Codec.LZ4, bytes(1_000_000)), Codec.LZ4, ErrorCode.TELEMETRY_TOO_LARGE),
        (compress(Codec.SNAPPY, bytes(200_000)), Codec.SNAPPY, ErrorCode.TELEMETRY_TOO_LARGE),
    ],
    ids=lambda value: value.name if isinstance(value, Codec | ErrorCode) else f"{len(value)} bytes",
)
def test_damaged_and_exploding_pushes(
    serving: Serving, wire: Wire, data: bytes, codec: Codec, code: ErrorCode
) -> None:
    watch(wire)
    assert push(wire, get(wire), data, codec) == code
    assert clients(wire)[0].pushes == 0
    value = serving.inside(lambda: serving.broker.metrics.value(catalogue.PUSHES, code.name))
    assert value == 1


def test_a_client_is_told_when_its_subscription_has_changed(wire: Wire) -> None:
    watch(wire)
    before = get(wire)
    watch(wire, metrics="a.")
    assert push(wire, before, b"") == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    after = get(wire, before.client_instance_id)
    assert after.error_code == 0
    assert after.requested_metrics == ["a."]


def advertised(wire: Wire) -> set[int]:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    return {each.api_key for each in wire.ask(request, 3).api_keys}


def test_clients_are_offered_to_push_only_if_some_are_to(wire: Wire) -> None:
    assert not advertised(wire) & TELEMETRY_KEYS
    watch(wire, **{"interval.ms": "60000"})
    assert advertised(wire) >= TELEMETRY_KEYS
    assert replace(wire, CLIENT_METRICS, "watch", {}).error_code == 0
    assert not advertised(wire) & TELEMETRY_KEYS


def test_an_option_switches_it_off(tmp_path: Path) -> None:
    off = {"barnabas.client.telemetry.enable": "false"}
    with Serving(tmp_path / "off", off) as serving, serving.connect() as other:
        assert not advertised(other) & TELEMETRY_KEYS
        assert watch(other).error_code == 0, "the resources are the cluster's"
        assert not advertised(other) & TELEMETRY_KEYS


def test_what_another_release_stored_has_no_effect(
    serving: Serving, wire: Wire, new_name: Callable[[], str]
) -> None:
    values = {"metrics": "*", "more": "1"}
    serving.inside(lambda: serving.broker.configs_changed("client-metrics", "odd", values))
    assert get(wire).requested_metrics == []
    (line,) = serving.lines.of()
    assert "client-metrics odd: has no effect: more: not an option" in line
    serving.lines.clear()


def test_every_broker_of_a_cluster_learns_of_a_resource() -> None:
    with Cluster(brokers=2) as cluster:
        addresses = [address.rpartition(":") for address in cluster.bootstrap.split(",")]
        wires = [Wire((host, int(port))) for host, _, port in addresses]
        try:
            assert len(wires) == 2
            assert watch(wires[0]).error_code == 0
            wait_for(lambda: [*map(listed, wires)] == [["watch"]] * 2, "both have learnt it")
            assert all(advertised(wire) >= TELEMETRY_KEYS for wire in wires)
            subscriptions = [get(wire) for wire in wires]
            assert [each.requested_metrics for each in subscriptions] == [["*"], ["*"]]
            # A client that loses its broker goes on at another one, under its own id.
            assert push(wires[1], subscriptions[0], b"") == 0
            assert replace(wires[1], CLIENT_METRICS, "watch", {}).error_code == 0
            wait_for(lambda: not any(map(listed, wires)), "both have forgotten it")
        finally:
            for wire in wires:
                wire.socket.close()
