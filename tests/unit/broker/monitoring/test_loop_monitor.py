"""How busy and how late the loop is, on clocks of the test's own."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from barnabas.broker.housekeeping import LOOP_TICK_MS
from barnabas.broker.loop import LongSteps, Step
from barnabas.broker.monitoring.loop_monitor import LoopMonitor
from barnabas.diary.catalogue import STALL_CAUSES
from barnabas.metrics.catalogue.loop import (
    GC_PAUSE,
    HANDLER_IDLE,
    LOOP_BUSY,
    LOOP_LAG,
    LOOP_STALLS,
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
        self.steps = LongSteps(lambda: self.now_s)
        self.stalls: list[tuple[str, dict[str, Any]]] = []
        self.monitor = LoopMonitor(
            self.registry,
            lambda: self.now_s,
            lambda: self.used_s,
            lambda: self.blocked_s,
            self.steps,
            lambda cause, data: self.stalls.append((cause, data)),
        )
        self.monitor.tick()

    def run(self, seconds: float, busy: float = 0.0, blocked: float = 0.0) -> None:
        for _ in range(round(seconds / TICK_S)):
            self.now_s += TICK_S
            self.used_s += TICK_S * busy
            self.blocked_s += TICK_S * blocked
            self.monitor.tick()

    def stand_still(self, seconds: float, used_s: float = 0.0) -> None:
        self.now_s += TICK_S + seconds
        self.used_s += used_s
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


@pytest.mark.parametrize("kind", ["request", "task", "garbage-collection"])
def test_a_long_step_is_named(kind: str) -> None:
    loop = Loop()
    loop.run(1, busy=0.5)
    loop.steps.ran("task", "another", 0.2)
    loop.steps.ran(kind, "the longest", 0.39)
    loop.stand_still(0.4, used_s=0.35)
    [(cause, data)] = loop.stalls
    assert cause == kind
    assert data == {"ms": 400, "used_ms": 350, "what": "the longest", "step_ms": 390}
    assert {each: loop.value(LOOP_STALLS, each) for each in STALL_CAUSES} == {
        **dict.fromkeys(STALL_CAUSES, 0),
        kind: 1,
    }


@pytest.mark.parametrize(("used_s", "cause"), [(0.3, "busy"), (0.1, "waiting")])
def test_a_stall_without_a_long_step(used_s: float, cause: str) -> None:
    loop = Loop()
    loop.steps.ran("request", "Produce", 3.0)
    loop.run(TICK_S)  # what ran before the last tick is not the cause
    loop.steps.ran("request", "Produce", 0.19)
    loop.stand_still(0.4, used_s)
    assert loop.stalls == [(cause, {"ms": 400, "used_ms": round(used_s * 1000)})]


def test_a_loop_that_is_a_little_late_does_not_stand_still() -> None:
    loop = Loop()
    for _ in range(5):
        loop.stand_still(0.09)
    assert loop.stalls == []
    loop.stand_still(0.1)
    assert [data["ms"] for _, data in loop.stalls] == [100]


def test_garbage_collections_are_timed_while_it_is_started() -> None:
    loop = Loop()

    def take_long(phase: str, information: dict[str, int]) -> None:
        if phase == "start":
            loop.now_s += 0.3

    loop.monitor.start()
    gc.callbacks.append(take_long)
    try:
        gc.collect(1)
        assert loop.steps.take() == Step("garbage-collection", "generation 1", pytest.approx(0.3))
        loop.monitor.stop()
        gc.collect(1)
        assert loop.steps.take() is None
        pauses = loop.registry.histogram(GC_PAUSE)
        assert pauses.total == pytest.approx(300_000, abs=10)
    finally:
        gc.callbacks.remove(take_long)
    loop.monitor.stop()


def test_windows_of_quantiles_begin_every_minute() -> None:
    loop = Loop()
    times = loop.registry.histogram(TIMES)
    times.record(5)
    loop.run(119)
    assert times.quantile(0.5) == 5
    loop.run(2)
    assert times.quantile(0.5) == 0
    assert times.count == 1
