"""A registry as OTLP in JSON: what OpenTelemetry's collectors read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from math import nan
from typing import Any

import pytest

from barnabas.metrics import otlp
from barnabas.metrics.metric import Kind, Metric, label_text
from barnabas.metrics.otlp import BOUNDS, batches, body
from barnabas.metrics.registry import Registry

COUNTER = Metric("c_total", Kind.COUNTER, "A counter of things.", ("topic", "other"))
GAUGE = Metric("g", Kind.GAUGE, "A gauge of things.", scale=0.5)
TIMES = Metric("t", Kind.QUANTILES, "Times of things.", ("request",), scale=0.001)
SIZES = Metric("s", Kind.BUCKETS, "Sizes of things.")
LOGS = Metric("l", Kind.GAUGE, "Sizes of logs.", ("topic", "partition"))


class Logs:
    """A collector of two series, and one that is no number."""

    def collect(self) -> Iterator[tuple[Metric, Iterable[tuple[str, float]]]]:
        yield (
            LOGS,
            [
                (label_text(LOGS.labels, ('a "b"\\\n,x="y"', "0")), 7),
                ("", 8.5),
                (label_text(LOGS.labels, ("b", "1")), nan),
            ],
        )


class Broken:
    def collect(self) -> Iterator[tuple[Metric, Iterable[tuple[str, float]]]]:
        yield LOGS, self.series()
        raise RuntimeError("of a part")

    def series(self) -> Iterator[tuple[str, float]]:
        yield "", 1.0
        raise RuntimeError("of a series")


def read(registry: Registry) -> dict[str, dict[str, Any]]:
    """The metrics by name, through the bytes."""
    found = {}
    for batch in batches(registry, 5, 7):
        (resource,) = json.loads(body(batch, {"service.name": "x"}))["resourceMetrics"]
        assert resource["resource"]["attributes"] == [
            {"key": "service.name", "value": {"stringValue": "x"}}
        ]
        (scope,) = resource["scopeMetrics"]
        for metric in scope["metrics"]:
            found[metric["name"]] = metric
    return found


def labels(point: dict[str, Any]) -> dict[str, str]:
    return {each["key"]: each["value"]["stringValue"] for each in point["attributes"]}


def test_counters_and_gauges() -> None:
    registry = Registry()
    registry.counter(COUNTER, "orders", "").add(3)
    registry.gauge(GAUGE, lambda: 5)
    found = read(registry)
    assert found["c_total"] == {
        "name": "c_total",
        "description": "A counter of things.",
        "sum": {
            "aggregationTemporality": 2,
            "isMonotonic": True,
            "dataPoints": [
                {
                    "attributes": [{"key": "topic", "value": {"stringValue": "orders"}}],
                    "startTimeUnixNano": "5",
                    "timeUnixNano": "7",
                    "asDouble": 3.0,
                }
            ],
        },
    }
    (point,) = found["g"]["gauge"]["dataPoints"]
    assert (point["asDouble"], point["attributes"]) == (2.5, [])


def test_distributions() -> None:
    registry = Registry()
    for value in (1, 17, 17, 1 << 30):
        registry.histogram(TIMES, "Fetch").record(value)
        registry.histogram(SIZES).record(value)
    found = read(registry)
    (times,) = found["t"]["summary"]["dataPoints"]
    assert (times["count"], labels(times)) == ("4", {"request": "Fetch"})
    assert times["sum"] == pytest.approx((1 + 34 + (1 << 30)) / 1000)
    assert times["quantileValues"][0] == {"quantile": 0.5, "value": pytest.approx(0.017)}
    (sizes,) = found["s"]["histogram"]["dataPoints"]
    assert sizes["explicitBounds"] == list(BOUNDS)
    counts = [int(each) for each in sizes["bucketCounts"]]
    assert len(counts) == len(BOUNDS) + 1
    assert (counts[0], counts[1], counts[-1], sum(counts)) == (1, 2, 1, 4)
    assert found["s"]["histogram"]["aggregationTemporality"] == 2


def test_collected_series() -> None:
    registry = Registry()
    registry.add_collector(Logs())
    first, second = read(registry)["l"]["gauge"]["dataPoints"]
    assert labels(first) == {"topic": 'a "b"\\\n,x="y"', "partition": "0"}
    assert (first["asDouble"], second["asDouble"]) == (7.0, 8.5)


def test_a_part_that_cannot_be_read_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry()
    registry.add_collector(Broken())
    registry.gauge(GAUGE, lambda: 1)
    assert set(read(registry)) == {"g", "l"}
    assert "metrics of Broken are left out" in caplog.text
    assert "of a series" in caplog.text


def test_batches_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "POINTS_MAX", 3)
    registry = Registry()
    for number in range(5):
        registry.counter(COUNTER, str(number), "").add(number)
    registry.gauge(GAUGE, lambda: 1)
    names = [[metric["name"] for metric in batch] for batch in batches(registry, 0, 1)]
    assert names == [["c_total"], ["c_total", "g"]]
    assert list(batches(Registry(), 0, 1)) == []
