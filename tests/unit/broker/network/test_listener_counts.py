"""What a listener counts goes on under its name."""

from __future__ import annotations

from barnabas.broker.network.listener_counts import ListenerCounts
from barnabas.metrics.catalogue.network import CONNECTIONS_CLOSED, CONNECTIONS_OPENED
from barnabas.metrics.catalogue.rejections import REJECTIONS
from barnabas.metrics.registry import Registry


def test_connections_are_counted_and_their_rates() -> None:
    registry = Registry()
    counts = ListenerCounts(registry, "IN")
    for at_ms in range(0, 30_000, 1000):
        counts.opened(at_ms)
    counts.closed(30_000)
    assert registry.value(CONNECTIONS_OPENED, "IN", "0") == 30
    assert registry.value(CONNECTIONS_CLOSED, "IN", "0") == 1
    assert counts.opening.per_second(30_000) == 1.0
    assert 0 < counts.closing.per_second(30_000) < 0.1


def test_a_listener_that_is_opened_again_goes_on_counting() -> None:
    registry = Registry()
    for _ in range(2):
        counts = ListenerCounts(registry, "IN")
        counts.bytes_in.value += 5
        counts.rejected("tls")
    assert counts.bytes_in.value == 10
    assert registry.value(REJECTIONS, "tls") == 2
