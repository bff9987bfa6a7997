"""The metrics listener of a real broker: paths, parameters, token, TLS, and changes at run time."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.exposed import Exposed, parse
from tests.unit.broker.encrypted import BROKER, ROOT
from tests.unit.broker.monitoring.http_client import Client, get
from tests.unit.broker.network.test_address_changes import set_to
from tests.unit.broker.serving import Serving, metadata, wait_for
from tools.processes import free_port

from barnabas.broker.monitoring import metrics_listener
from barnabas.broker.monitoring.health import Health
from barnabas.broker.monitoring.metrics_listener import MetricsListener
from barnabas.config.broker import BrokerOptions
from barnabas.metrics.catalogue.exposing import SCRAPE_DURATION, SCRAPE_FAILURES, SCRAPES
from barnabas.metrics.catalogue.requests import TOTAL_TIME
from barnabas.metrics.metric import Kind, Metric, label_text
from barnabas.metrics.registry import Registry
from barnabas.model.errors import ConfigError

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
ANYWHERE = {"barnabas.metrics.listener": "127.0.0.1:0"}
SIZE = Metric("test_size", Kind.GAUGE, "Size.", ("topic", "partition"))


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("data"), ANYWHERE) as running:
        yield running


def address_of(serving: Serving) -> tuple[str, int]:
    address = serving.inside(lambda: serving.broker.metrics_address)
    assert address is not None
    return address


def scrape(serving: Serving, query: str = "", **fields: str) -> Exposed:
    reply = get(address_of(serving), f"/metrics{query}", **fields)
    assert reply.status == 200, reply.text
    return parse(reply.text, openmetrics="openmetrics" in reply.headers["Content-Type"])


def test_a_scrape_has_what_the_registry_has(serving: Serving) -> None:
    with serving.connect() as wire:
        metadata(wire)
    found = scrape(serving)
    assert found.value(f"{TOTAL_TIME.name}_count", request="Metadata") >= 1
    assert found.value(SCRAPES.name, path="/metrics") >= 1


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("accepted", ["*/*", OPENMETRICS])
def test_form_and_packing_are_negotiated(serving: Serving, accepted: str, packed: bool) -> None:
    reply = get(
        address_of(serving),
        "/metrics",
        Accept=accepted,
        Accept_Encoding="gzip" if packed else "identity",
    )
    openmetrics = accepted == OPENMETRICS
    media_type = "application/openmetrics-text" if openmetrics else "text/plain"
    assert reply.headers["Content-Type"].startswith(media_type)
    assert ("Content-Encoding" in reply.headers) is packed
    assert parse(reply.text, openmetrics=openmetrics)


@pytest.mark.parametrize("names", ["jmx", "reporter", "confluent"])
@pytest.mark.parametrize("accepted", ["*/*", OPENMETRICS])
def test_prometheus_own_reader_reads_all_of_a_broker(
    serving: Serving, accepted: str, names: str
) -> None:
    openmetrics = accepted == OPENMETRICS
    module = "prometheus_client.openmetrics.parser" if openmetrics else "prometheus_client.parser"
    parser = pytest.importorskip(module, reason="prometheus-client is not installed")
    reply = get(address_of(serving), f"/metrics?names={names}", Accept=accepted)
    families = list(parser.text_string_to_metric_families(reply.text))
    ours = parse(reply.text, openmetrics=openmetrics)
    assert len(families) == len(ours) > 50
    assert sum(len(each.samples) for each in families) == sum(
        len(each.samples) for each in ours.values()
    )


def test_parameters_choose_groups_and_names(serving: Serving) -> None:
    with serving.connect() as wire:
        set_to(wire, "log.cleaner.backoff.ms", None)  # any request is counted
    found = scrape(serving, "?collect[]=requests")
    assert f"{TOTAL_TIME.name}_count" in found
    assert SCRAPES.name not in found
    with_names = scrape(serving, "?names=confluent&collect[]=broker")
    assert "kafka_server_socketservermetrics_connection_accept_rate" in with_names


@pytest.mark.parametrize(
    ("path", "status", "why"),
    [
        ("/metrics?names=kafka", 400, "names=kafka: must be jmx, reporter, confluent"),
        ("/metrics?names=jmx&names=reporter", 400, "names: must be given once"),
        ("/metrics?collect[]=all", 400, "collect[]=all: must be broker, requests, topics"),
        ("/", 404, "the paths are /metrics, /metrics/cluster, /health/live, /health/ready"),
        ("/metrics/../etc", 404, "the paths are"),
    ],
)
def test_what_is_not_served(serving: Serving, path: str, status: int, why: str) -> None:
    reply = get(address_of(serving), path)
    assert (reply.status, reply.text.startswith(why)) == (status, True)


def test_health_is_told_apart_from_life(serving: Serving) -> None:
    address = address_of(serving)
    assert get(address, "/health/live").text == "alive\n"
    ready = get(address, "/health/ready")
    assert (ready.status, ready.text) == (200, "ready\n")
    serving.inside(lambda: serving.broker._life.health.entered("stopping"))
    try:
        not_ready = get(address, "/health/ready")
        assert (not_ready.status, not_ready.text) == (503, "not ready: stopping\n")
        assert get(address, "/health/live").status == 200
    finally:
        serving.inside(lambda: serving.broker._life.health.serving())


def test_a_thousand_idle_connections_hold_nobody_up(serving: Serving) -> None:
    """They are refused beyond the limit, and Kafka's clients do not notice."""
    address = address_of(serving)
    clients = []
    try:
        for _ in range(1000):
            clients.append(Client(address))
        with serving.connect() as wire:
            assert metadata(wire).brokers
        listener = serving.broker._life._metrics_listener
        assert listener is not None
        limit = 2 * metrics_listener.CONNECTIONS_MAX
        assert serving.inside(lambda: len(listener.connections)) <= limit
        assert clients[0].get("/health/live").status == 200
    finally:
        for client in clients:
            client.close()
    serving.wait_inside(lambda: not listener.connections, "all connections are gone")
    assert get(address, "/health/live").status == 200


def test_what_cannot_be_read_is_counted_and_logged_once(tmp_path: Path) -> None:
    with Serving(tmp_path, ANYWHERE) as serving:
        broken = Metric("test_broken", Kind.GAUGE, "Broken.")
        serving.inside(lambda: serving.broker.metrics.gauge(broken, lambda: 1 // 0))
        assert broken.name not in scrape(serving)
        assert broken.name not in scrape(serving, "?collect[]=broker")
        serving.expect_line("metrics: test_broken left out, could not be read")
        assert serving.inside(lambda: serving.broker.metrics.value(SCRAPE_FAILURES)) == 2


class Sizes:
    """A collector of many partitions."""

    def collect(self) -> Iterator[tuple[Metric, Any]]:
        yield SIZE, [(label_text(SIZE.labels, ("t", str(number))), 1) for number in range(50)]


def test_too_many_partitions_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    options = {**ANYWHERE, "barnabas.metrics.partitions.max": 49}
    with Serving(tmp_path, options) as serving:
        serving.inside(lambda: serving.broker.metrics.add_collector(Sizes()))
        assert scrape(serving).value("barnabas_scrape_omitted_metrics") == 1
        serving.expect_line(
            "left out, because they have more than 49 series (barnabas.metrics.partitions.max): "
            "test_size; ?collect[]=partitions has them"
        )
        asked = scrape(serving, "?collect[]=partitions")
        assert len(asked.series(SIZE.name)) == 50
        with serving.connect() as wire:
            set_to(wire, "barnabas.metrics.partitions.max", "50")
            serving.wait_inside(
                lambda: serving.broker.options.barnabas_metrics_partitions_max == 50, "it is set"
            )
        wait_for(lambda: SIZE.name in scrape(serving), "the series are shown")


def test_scrapes_are_timed(serving: Serving) -> None:
    scrape(serving)
    registry = serving.broker.metrics
    serving.wait_inside(lambda: registry.value(SCRAPE_DURATION, "/metrics"), "a time is recorded")


def test_a_token_guards_the_metrics_but_not_the_health(tmp_path: Path) -> None:
    with Serving(tmp_path, {**ANYWHERE, "barnabas.metrics.token": "s3cret"}) as serving:
        address = address_of(serving)
        for fields in ({}, {"Authorization": "Bearer other"}, {"Authorization": "Basic s3cret"}):
            reply = get(address, "/metrics", **fields)
            assert (reply.status, reply.headers["WWW-Authenticate"]) == (401, "Bearer")
            assert reply.text == "a bearer token is required (barnabas.metrics.token)\n"
        assert get(address, "/metrics/cluster").status == 401
        assert get(address, "/metrics", Authorization="Bearer s3cret").status == 200
        assert get(address, "/health/ready").status == 200


def test_metrics_over_tls_and_a_renewed_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_listener, "TLS_RENEWAL_S", 0.05)
    store = BROKER.write_pem(tmp_path / "broker.pem")
    options = {
        **ANYWHERE,
        "barnabas.metrics.ssl.enable": "true",
        "listener.name.metrics.ssl.keystore.type": "PEM",
        "listener.name.metrics.ssl.keystore.location": store,
    }
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=ROOT.pem)
    with Serving(tmp_path / "data", options) as serving:
        address = address_of(serving)

        def serial() -> object:
            with Client(address, context) as client:
                assert client.get("/metrics").status == 200
                assert isinstance(client.socket, ssl.SSLSocket)
                certificate = client.socket.getpeercert()
                assert certificate is not None
                return certificate["serialNumber"]

        first = serial()
        with Client(address) as plain:
            plain.request("/metrics")
            plain.expect_close()
        ROOT.issue("broker").write_pem(store)
        wait_for(lambda: serial() != first, "the new certificate is used")
        second = serial()
        store.write_text("nothing")
        serving.expect_line("metrics: the listener stays as it was: barnabas.metrics.ssl.enable")
        assert serial() == second


def listens(serving: Serving, port: int) -> bool:
    return serving.broker.metrics_address == ("127.0.0.1", port)


def test_the_address_changes_at_run_time(tmp_path: Path) -> None:
    """Also from none: nothing of it is in memory until then."""
    with Serving(tmp_path) as serving:
        name = "barnabas.metrics.listener"
        assert serving.broker._life._metrics_listener is None
        first, second = free_port(), free_port()
        with serving.connect() as wire:
            for port in (first, second):
                set_to(wire, name, f"127.0.0.1:{port}")
                serving.wait_inside(partial(listens, serving, port), "it listens there")
                assert get(("127.0.0.1", port), "/metrics").status == 200
                assert get(("127.0.0.1", port), "/metrics/cluster").status == 200
            with pytest.raises(ConnectionRefusedError):
                get(("127.0.0.1", first), "/metrics")
            taken = serving.broker.endpoints[0].port
            set_to(wire, name, f"127.0.0.1:{taken}")
            serving.expect_line(f"metrics: the listener stays as it was: {name}=127.0.0.1:{taken}")
            assert get(("127.0.0.1", second), "/health/ready").status == 200
            set_to(wire, name, None)
            serving.wait_inside(lambda: serving.broker.metrics_address is None, "it is closed")


def test_a_port_in_use_stops_the_start(serving: Serving, tmp_path: Path) -> None:
    port = address_of(serving)[1]
    other = Serving(tmp_path, {"barnabas.metrics.listener": f"127.0.0.1:{port}"})
    with pytest.raises(ConfigError, match=f"listener=127.0.0.1:{port}: cannot listen: Address"):
        other.start()
    for name in ("barnabas", "asyncio"):
        logging.getLogger(name).removeHandler(other.lines)


def test_health_answers_while_the_broker_starts() -> None:
    """The listener is open before the broker has joined a cluster."""

    async def story() -> None:
        health = Health()
        listener = MetricsListener(Registry(), health, None, asyncio.get_running_loop().time)
        await listener.configure(BrokerOptions.parse(ANYWHERE))
        assert listener.address is not None

        def ask(path: str) -> Any:
            assert listener.address is not None
            return asyncio.to_thread(get, listener.address, path)

        ready = await ask("/health/ready")
        assert (ready.status, ready.text) == (503, "not ready: starting\n")
        assert (await ask("/health/live")).status == 200
        assert (await ask("/metrics")).status == 200
        cluster = await ask("/metrics/cluster")
        assert (cluster.status, cluster.text) == (503, "the broker has not joined a cluster\n")
        await listener.close()

    asyncio.run(story())


def test_a_killed_broker_leaves_no_listener(tmp_path: Path) -> None:
    serving = Serving(tmp_path, ANYWHERE).start()
    address = address_of(serving)
    serving.kill()
    with pytest.raises(ConnectionRefusedError):
        get(address, "/metrics")
