"""The registry: one instrument per metric and labels, and what is collected beside them."""

from __future__ import annotations

import pytest

from barnabas.metrics.instruments import Histogram
from barnabas.metrics.metric import Kind, Metric, label_text
from barnabas.metrics.registry import Registry

REQUESTS = Metric("requests_total", Kind.COUNTER, "Requests.", ("api", "listener"))
SIZE = Metric("size", Kind.GAUGE, "Size.", ("partition",))
SECONDS = Metric("seconds", Kind.BUCKETS, "Seconds.")
TIMES = Metric("times", Kind.QUANTILES, "Times.")


def test_the_same_metric_and_labels_give_the_same_instrument() -> None:
    registry = Registry()
    produce = registry.counter(REQUESTS, "Produce", "IN")
    assert registry.counter(REQUESTS, "Produce", "IN") is produce
    assert registry.counter(REQUESTS, "Produce", "OUT") is not produce
    assert registry.histogram(TIMES) is registry.histogram(TIMES)


def test_registries_share_nothing() -> None:
    """Several brokers live in one process."""
    first, second = Registry(), Registry()
    first.counter(REQUESTS, "Produce", "IN").add(5)
    assert second.counter(REQUESTS, "Produce", "IN").value == 0


def test_an_instrument_has_the_kind_and_the_labels_of_its_metric() -> None:
    registry = Registry()
    with pytest.raises(AssertionError, match="requests_total is a counter"):
        registry.histogram(REQUESTS, "Produce", "IN")
    with pytest.raises(AssertionError, match="has labels"):
        registry.counter(REQUESTS, "Produce")


def test_a_gauge_replaces_the_former_one() -> None:
    """A partition that comes back registers its gauges again; the old object must not be read."""
    registry = Registry()
    registry.gauge(SIZE, lambda: 1, "0")
    registry.gauge(SIZE, lambda: 2, "0")
    assert registry.value(SIZE, "0") == 2


def test_values_of_every_kind_can_be_read() -> None:
    registry = Registry()
    registry.counter(REQUESTS, "Fetch", "IN").add(3)
    registry.gauge(SIZE, lambda: 7, "0")
    for value in range(10):
        registry.histogram(TIMES).record(value)
    assert registry.value(REQUESTS, "Fetch", "IN") == 3
    assert registry.value(SIZE, "0") == 7
    assert registry.value(TIMES) == 10
    assert registry.value(SIZE, "1") == 0
    assert [metric for metric, _ in registry.families()] == [REQUESTS, SIZE, TIMES]


def test_what_is_removed_is_gone() -> None:
    registry = Registry()
    registry.gauge(SIZE, lambda: 1, "0")
    registry.gauge(SIZE, lambda: 1, "1")
    assert registry.remove(SIZE, "0")
    assert not registry.remove(SIZE, "0")
    assert not registry.remove(TIMES)
    assert [values for _, series in registry.families() for values, _ in series] == [("1",)]
    assert registry.remove(SIZE, "1")
    assert list(registry.families()) == []


def test_a_part_may_register_its_own_histogram_and_windows_are_rotated() -> None:
    registry = Registry()
    own = Histogram()
    registry.add(TIMES, own)
    registry.add(SECONDS, own)
    assert registry.histogram(TIMES) is own
    own.record(5)
    registry.rotate()
    registry.rotate()
    assert (own.quantile(0.5), own.count) == (0, 1), "rotated once a time, not once a metric"
    own.record(6)
    registry.rotate()
    assert own.quantile(0.5) == 6


def test_label_texts_are_escaped_and_leave_empty_values_out() -> None:
    text = label_text(("a", "b", "c"), ('say "hi"', "", "one\\two\nthree"))
    assert text == 'a="say \\"hi\\"",c="one\\\\two\\nthree"'
