"""When records are due, whatever becomes of the others."""

from __future__ import annotations

import threading

import pytest

from barnabas.cli.perf import pacing
from barnabas.cli.perf.pacing import WAIT_S, Pace, due_times
from barnabas.cli.perf.plan import Plan


class Clock:
    """Time that passes only when it is waited for."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.waits: list[float] = []

    def perf_counter(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(pacing, "time", made)
    return made


def plan(**options: object) -> Plan:
    return Plan("produce", "t", **options)


def test_records_are_due_at_even_intervals(clock: Clock) -> None:
    due = list(due_times(plan(records=4, throughput=10.0), threading.Event(), clock.wait))
    assert due == pytest.approx([100.0, 100.1, 100.2, 100.3])


def test_a_stall_shows_in_all_records_that_it_delays(clock: Clock) -> None:
    times = due_times(plan(records=4, throughput=10.0), threading.Event(), clock.wait)
    first = next(times)
    clock.now_s += 0.25  # sending the first one took so long
    rest = list(times)
    assert [first, *rest] == pytest.approx([100.0, 100.1, 100.2, 100.3])
    assert clock.waits == pytest.approx([0.05]), "two records were late, and sent at once"


def test_latencies_can_count_from_when_records_are_sent(clock: Clock) -> None:
    sent = due_times(
        plan(records=2, throughput=10.0, from_intended=False), threading.Event(), clock.wait
    )
    next(sent)
    clock.now_s += 0.5
    assert list(sent) == [100.5]


def test_without_a_throughput_nothing_is_waited_for(clock: Clock) -> None:
    assert list(due_times(plan(records=3), threading.Event(), clock.wait)) == [100.0] * 3
    assert clock.waits == []


def test_the_duration_ends_it(clock: Clock) -> None:
    due = list(due_times(plan(duration_s=1.0, throughput=4.0), threading.Event(), clock.wait))
    assert due == pytest.approx([100.0, 100.25, 100.5, 100.75])
    pace = Pace(plan(duration_s=1.0), 100.0)
    assert pace.next_due(100.99) == 100.99
    assert pace.next_due(101.0) is None


def test_a_long_wait_notices_the_end(clock: Clock) -> None:
    stop = threading.Event()

    def wait(seconds: float) -> None:
        clock.wait(seconds)
        if len(clock.waits) == 3:
            stop.set()

    assert list(due_times(plan(throughput=0.01), stop, wait)) == [100.0]
    assert clock.waits == [WAIT_S] * 3
