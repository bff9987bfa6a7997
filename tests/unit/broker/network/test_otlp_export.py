"""The push by OTLP: to a collector that answers, that does not, and that refuses."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.serving import Serving, create_topic, wait_for

from barnabas.broker.network import otlp_export
from barnabas.broker.network.otlp_export import PATH, parse_endpoint, parse_headers
from barnabas.config.option import Password
from barnabas.metrics.catalogue import otel as catalogue
from barnabas.model.errors import ConfigError


class Collector(ThreadingHTTPServer):
    """Keeps what is posted, and answers with one status."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.posted: list[tuple[str, dict[str, str], Any]] = []
        self.thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self.thread.start()

    def names(self) -> set[str]:
        return {
            metric["name"]
            for _, _, body in self.posted
            for metric in body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
        }

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        self.thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.posted.append((self.path, headers, json.loads(gzip.decompress(body))))
        self.send_response(self.server.status)
        if self.server.status == 302:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def options(collector: Collector, **more: str) -> dict[str, str]:
    return {
        "barnabas.otel.metrics.endpoint": f"http://127.0.0.1:{collector.server_port}",
        "barnabas.otel.metrics.interval.ms": "1000",
        **more,
    }


def test_metrics_are_pushed_and_once_more_at_the_end(tmp_path: Path, collector: Collector) -> None:
    headers = {"barnabas.otel.metrics.headers": "Authorization=Bearer secret, x-tenant=a"}
    with Serving(tmp_path, options(collector, **headers)) as serving:
        with serving.connect() as wire:
            create_topic(wire, "orders")
        wait_for(lambda: collector.posted, "metrics are pushed")
        metrics = serving.broker.metrics
        serving.wait_inside(lambda: metrics.value(catalogue.EXPORTS, "ok"), "it is counted")
        assert serving.inside(lambda: metrics.value(catalogue.EXPORTED_POINTS)) > 0
        before = len(collector.posted)
    assert len(collector.posted) > before, "the last numbers are not lost"
    path, sent, body = collector.posted[0]
    assert path == PATH
    assert sent["content-type"] == "application/json"
    assert (sent["authorization"], sent["x-tenant"]) == ("Bearer secret", "a")
    attributes = {
        each["key"]: each["value"]["stringValue"]
        for each in body["resourceMetrics"][0]["resource"]["attributes"]
    }
    assert attributes["service.name"] == "barnabas"
    assert attributes["barnabas.broker.id"] == "0"
    assert "kafka_network_requestmetrics_totaltimems" in collector.names()


@pytest.mark.parametrize("status", [302, 401, 503])
def test_a_collector_that_refuses_costs_one_line(
    tmp_path: Path, collector: Collector, status: int
) -> None:
    collector.status = status
    with Serving(tmp_path, options(collector)) as serving:
        metrics = serving.broker.metrics
        serving.wait_inside(
            lambda: metrics.value(catalogue.EXPORTS, "failed") >= 2, "it fails twice"
        )
        (line,) = serving.lines.of()
        assert "not pushed to http://127.0.0.1" in line
        assert str(status) in line
        assert {path for path, _, _ in collector.posted} == {PATH}, "no redirect is followed"
        collector.status = 200
        serving.wait_inside(lambda: metrics.value(catalogue.EXPORTS, "ok"), "it goes on")
        serving.lines.clear()


def test_a_collector_that_is_not_there(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_export, "TIMEOUT_S", 1.0)
    given = options(collector)
    collector.server_close()
    with Serving(tmp_path, given) as serving:
        metrics = serving.broker.metrics
        serving.wait_inside(lambda: metrics.value(catalogue.EXPORTS, "failed"), "it fails")
        serving.lines.clear()


def test_a_broker_that_is_killed_pushes_nothing_more(tmp_path: Path, collector: Collector) -> None:
    serving = Serving(
        tmp_path, {**options(collector), "barnabas.otel.metrics.interval.ms": "60000"}
    )
    serving.start()
    serving.kill()
    assert collector.posted == []


def test_a_mistake_of_ours_does_not_end_it(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> bytes:
        raise ZeroDivisionError("in the test")

    with monkeypatch.context() as patched, Serving(tmp_path, options(collector)) as serving:
        patched.setattr(otlp_export, "body", fails)
        metrics = serving.broker.metrics
        serving.wait_inside(lambda: metrics.value(catalogue.EXPORTS, "failed"), "it fails")
        patched.undo()
        serving.wait_inside(lambda: metrics.value(catalogue.EXPORTS, "ok"), "it goes on")
        assert "metrics not pushed" in serving.lines.of()[0]
        serving.lines.clear()


def test_endpoints() -> None:
    assert parse_endpoint("http://h:4318") == "http://h:4318/v1/metrics"
    assert parse_endpoint("https://h/") == "https://h/v1/metrics"
    assert parse_endpoint("https://h/otlp/metrics?x=1#y") == "https://h/otlp/metrics?x=1"
    for wrong in ("h:4318", "ftp://h", "http://", "grpc://h:4317"):
        with pytest.raises(ConfigError, match="must be http"):
            parse_endpoint(wrong)


def test_headers() -> None:
    assert parse_headers(None) == {}
    assert parse_headers(Password("a=b=c, x-y=1,")) == {"a": "b=c", "x-y": "1"}
    for wrong in ("secret", "se cret=1", "a=secret\n1", "=secret", "a=sécret"):
        with pytest.raises(ConfigError, match="hidden") as refused:
            parse_headers(Password(wrong))
        assert "cret" not in str(refused.value)


def test_an_unusable_endpoint_fails_the_start(tmp_path: Path) -> None:
    serving = Serving(tmp_path, {"barnabas.otel.metrics.endpoint": "localhost:4317"})
    with pytest.raises(ConfigError, match="must be http"):
        serving.start()
    serving._forget()
