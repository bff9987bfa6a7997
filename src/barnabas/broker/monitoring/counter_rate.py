"""How fast a counter grows, as Kafka's own metrics show it."""

from __future__ import annotations

from barnabas.metrics.instruments import Counter
from barnabas.quotas.sampled_rate import SampledRate, Windows

RATE_WINDOWS = Windows(2, 30_000)
"""Kafka's defaults: metrics.num.samples and metrics.sample.window.ms."""


class CounterRate:
    """A rate per second, from samples of a counter."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._seen = counter.value
        self._rate = SampledRate(RATE_WINDOWS)

    def sample(self, now_ms: int) -> None:
        """Add what was counted since the last sample."""
        value = self._counter.value
        if value != self._seen:
            self._rate.record(value - self._seen, now_ms)
            self._seen = value

    def per_second(self, now_ms: int) -> float:
        """Return the rate over the last minute."""
        self.sample(now_ms)
        return self._rate.per_second(now_ms)
