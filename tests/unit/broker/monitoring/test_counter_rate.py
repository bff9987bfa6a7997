"""The rate of a counter over two windows of half a minute."""

from __future__ import annotations

import pytest

from barnabas.broker.monitoring.counter_rate import CounterRate
from barnabas.metrics.instruments import Counter


def test_it_is_spread_over_a_window_at_least_and_forgotten_after_two() -> None:
    counter = Counter()
    counter.add(1000)
    rate = CounterRate(counter)
    assert rate.per_second(0) == 0, "what was before does not count"
    counter.add(60)
    assert rate.per_second(1000) == pytest.approx(60 / 30, rel=0.1)
    counter.add(60)
    rate.sample(40_000)
    assert rate.per_second(50_000) == pytest.approx(120 / 50, rel=0.1)
    assert rate.per_second(200_000) == 0
