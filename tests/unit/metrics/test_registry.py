"""The registry: one instrument per name and labels, and a snapshot for exporters."""

from __future__ import annotations

import pytest

from barnabas.metrics.registry import Family, Registry, Sample


def test_the_same_name_and_labels_give_the_same_instrument() -> None:
    registry = Registry()
    produce = registry.counter("requests_total", "Requests.", api="Produce", listener="IN")
    assert registry.counter("requests_total", "Requests.", listener="IN", api="Produce") is produce
    assert registry.counter("requests_total", "Requests.", api="Fetch") is not produce
    assert registry.meter("marks", "Marks.", 0) is registry.meter("marks", "Marks.", 5)
    assert registry.histogram("sizes", "Sizes.") is registry.histogram("sizes", "Sizes.")


def test_registries_share_nothing() -> None:
    """Several brokers live in one process."""
    first, second = Registry(), Registry()
    first.counter("requests_total", "Requests.").add(5)
    assert second.counter("requests_total", "Requests.").value == 0


def test_a_name_has_one_kind() -> None:
    registry = Registry()
    registry.counter("requests_total", "Requests.")
    with pytest.raises(AssertionError, match="requests_total is a Counter, not a Histogram"):
        registry.histogram("requests_total", "Requests.")


def test_a_gauge_replaces_the_former_one() -> None:
    """A partition that comes back registers its gauges anew; the old object must not be read."""
    registry = Registry()
    registry.gauge("size", "Size.", lambda: 1, partition="0")
    registry.gauge("size", "Size.", lambda: 2, partition="0")
    (family,) = registry.snapshot(0)
    assert family.samples == [Sample({"partition": "0"}, {"value": 2})]


def test_a_snapshot_has_every_number() -> None:
    registry = Registry()
    registry.counter("requests_total", "Requests.", api="Fetch").add(3)
    registry.gauge("connections", "Connections.", lambda: 7)
    histogram = registry.histogram("latency_us", "Latency.")
    for value in range(1, 11):
        histogram.record(value)
    registry.meter("bytes_in", "Bytes.", 0).mark(500)
    assert registry.snapshot(1_000) == [
        Family("requests_total", "counter", "Requests.", [Sample({"api": "Fetch"}, {"value": 3})]),
        Family("connections", "gauge", "Connections.", [Sample({}, {"value": 7})]),
        Family(
            "latency_us",
            "histogram",
            "Latency.",
            [
                Sample(
                    {},
                    {"count": 10, "total": 55, "mean": 5.5, "p50": 5, "p99": 10, "p999": 10},
                )
            ],
        ),
        Family(
            "bytes_in",
            "meter",
            "Bytes.",
            [Sample({}, {"count": 500, "rate_1m": 500.0, "rate_5m": 500.0, "rate_15m": 500.0})],
        ),
    ]


def test_what_is_removed_is_gone() -> None:
    registry = Registry()
    registry.counter("appends", "Appends.", topic="a")
    registry.counter("appends", "Appends.", topic="b")
    assert registry.remove("appends", topic="a")
    assert not registry.remove("appends", topic="a")
    assert not registry.remove("other")
    (family,) = registry.snapshot(0)
    assert family.samples == [Sample({"topic": "b"}, {"value": 0})]
    assert registry.remove("appends", topic="b")
    assert registry.snapshot(0) == []
