"""How busy and how late the loop is, on clocks of the test's own."""

from __future__ import annotations

import pytest

from barnabas.broker.housekeeping import LOOP_TICK_MS
from barnabas.broker.monitoring.loop_monitor import LoopMonitor
from barnabas.metrics.catalogue.loop import (
    HANDLER_IDLE,
    LOOP_BUSY,
    LOOP_LAG,
    ONE_PROCESSOR_IDLE,
    PROCESSOR_IDLE,
)
from barnabas.metrics.metric import Kind, Metric
from barnabas.metrics.registry import Registry

TICK_S = LOOP_TICK_MS / 1000
TIMES = Metric("times", Kind.QUANTILES, "Times.")


class Loop:
    """A loop that ticks in time, unless told otherwise, and uses a part of each second."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.used_s = 3.0
        self.blocked_s = 0.0
        self.registry = Registry()
        self.monitor = LoopMonitor(
            self.registry, lambda: self.now_s, lambda: self.used_s, lambda: self.blocked_s
        )
        self.monitor.tick()

    def run(self, seconds: float, busy: float = 0.0, blocked: float = 0.0) -> None:
        for _ in range(round(seconds / TICK_S)):
            self.now_s += TICK_S
            self.used_s += TICK_S * busy
            self.blocked_s += TICK_S * blocked
            self.monitor.tick()

    def value(self, metric: Metric, *labels: str) -> float:
        return self.registry.value(metric, *labels)


def test_nothing_is_known_at_first() -> None:
    loop = Loop()
    assert loop.value(LOOP_BUSY) == 0
    assert loop.value(HANDLER_IDLE) == 1


def test_the_busy_share_is_that_of_the_threads_clock() -> None:
    loop = Loop()
    loop.run(30, busy=0.25)
    assert loop.value(LOOP_BUSY) == pytest.approx(0.25)
    for metric, *labels in ((PROCESSOR_IDLE,), (HANDLER_IDLE,), (ONE_PROCESSOR_IDLE, "0")):
        assert loop.value(metric, *labels) == pytest.approx(0.75)


def test_idle_is_an_average_of_a_minute_and_busy_of_ten_seconds() -> None:
    loop = Loop()
    loop.run(300, busy=1.0)
    loop.run(30, busy=0.0)
    assert loop.value(LOOP_BUSY) == 0
    assert loop.value(HANDLER_IDLE) == pytest.approx(0.5, abs=0.03)
    loop.run(40)
    assert loop.value(HANDLER_IDLE) == 1
    assert len(loop.monitor._samples) <= 62


def test_waiting_for_a_disk_is_busy_and_no_more_than_all_the_time() -> None:
    loop = Loop()
    loop.run(30, busy=0.25, blocked=0.5)
    assert loop.value(LOOP_BUSY) == pytest.approx(0.75)
    loop.run(60, busy=0.6, blocked=0.6)
    assert (loop.value(LOOP_BUSY), loop.value(HANDLER_IDLE)) == (1, 0)


def test_a_late_tick_is_the_lag() -> None:
    loop = Loop()
    loop.run(1)
    loop.now_s += TICK_S + 2.5
    loop.monitor.tick()
    lag = loop.registry.histogram(LOOP_LAG)
    assert lag.count == 11
    assert lag.total == pytest.approx(2_500_000, abs=20)


def test_windows_of_quantiles_begin_every_minute() -> None:
    loop = Loop()
    times = loop.registry.histogram(TIMES)
    times.record(5)
    loop.run(119)
    assert times.quantile(0.5) == 5
    loop.run(2)
    assert times.quantile(0.5) == 0
    assert times.count == 1
