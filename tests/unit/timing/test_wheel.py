"""The timing wheel against a plain list of deadlines: nothing early, lost, or fired twice."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.timing.wheel import Timer, TimingWheel


class Model:
    """What a wheel promises, said with a dict: item → the tick at which it is due."""

    def __init__(self, tick_ms: int, now_ms: int) -> None:
        self.tick_ms = tick_ms
        self.now_ms = now_ms
        self.ticks: dict[int, int] = {}

    def add(self, item: int, deadline_ms: int) -> None:
        self.ticks[item] = max(-(-deadline_ms // self.tick_ms), 0)

    def due(self, now_ms: int) -> list[int]:
        self.now_ms = max(self.now_ms, now_ms)
        return [item for item, tick in self.ticks.items() if tick <= self.now_ms // self.tick_ms]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(-5, 5_000)),
        st.tuples(st.just("cancel"), st.integers(0, 200)),
        st.tuples(st.just("advance"), st.integers(0, 3_000)),
    ),
    max_size=120,
)


@settings(max_examples=300, deadline=None)
@given(
    tick_ms=st.sampled_from([1, 3, 10]),
    wheel_size=st.sampled_from([2, 3, 8, 20]),
    start_ms=st.integers(0, 1_000_000),
    steps=STEPS,
)
def test_agrees_with_a_list_of_deadlines(
    tick_ms: int, wheel_size: int, start_ms: int, steps: list[tuple[str, int]]
) -> None:
    wheel = TimingWheel(tick_ms, wheel_size, start_ms)
    model = Model(tick_ms, start_ms)
    timers: list[Timer] = []
    now_ms = start_ms
    for step, amount in [*steps, ("advance", 10_000)]:
        if step == "add":
            model.add(len(timers), now_ms + amount)
            timers.append(wheel.add(now_ms + amount, len(timers)))
        elif step == "cancel" and timers:
            item = amount % len(timers)
            assert timers[item].cancel() == (item in model.ticks)
            model.ticks.pop(item, None)
        elif step == "advance":
            before_tick = now_ms // tick_ms
            now_ms += amount
            due = wheel.advance(now_ms)
            assert sorted(due) == sorted(model.due(now_ms))
            # What was overdue when it was added comes first; the rest is in tick order.
            ticks = [max(model.ticks.pop(item), before_tick) for item in due]
            assert ticks == sorted(ticks)
            assert all(timers[item].deadline_ms <= now_ms for item in due)
        assert len(wheel) == len(model.ticks)
        next_ms = wheel.next_deadline_ms()
        if model.ticks:
            assert next_ms is not None
            assert next_ms <= max(min(model.ticks.values()) * tick_ms, now_ms)
        else:
            assert next_ms is None


def test_waking_up_only_at_the_next_deadline_misses_nothing() -> None:
    """A loop that sleeps until `next_deadline_ms` fires each timer at its deadline."""
    wheel = TimingWheel(tick_ms=1, wheel_size=8)
    deadlines = [1, 7, 8, 9, 63, 64, 65, 511, 512, 513, 4_096, 100_000]
    for deadline_ms in deadlines:
        wheel.add(deadline_ms, deadline_ms)
    fired = []
    while (now_ms := wheel.next_deadline_ms()) is not None:
        fired += [(now_ms, deadline_ms) for deadline_ms in wheel.advance(now_ms)]
    assert fired == [(deadline_ms, deadline_ms) for deadline_ms in deadlines]


def test_a_coarse_bucket_that_comes_due_together_with_a_fine_one_passes_nothing_into_it() -> None:
    """The far timer is a whole turn of the lowest wheel away, so it has the near one's slot."""
    wheel = TimingWheel(tick_ms=1, wheel_size=4)
    wheel.add(20, "far")
    assert wheel.advance(14) == []
    wheel.add(16, "near")
    assert wheel.advance(16) == ["near"]
    assert wheel.advance(19) == []
    assert wheel.advance(20) == ["far"]


def test_a_coarse_tick_is_late_rather_than_early() -> None:
    wheel = TimingWheel(tick_ms=10, wheel_size=4)
    wheel.add(11, "item")
    assert wheel.advance(19) == []
    assert wheel.advance(20) == ["item"]


def test_a_passed_deadline_is_due_at_the_next_advance_even_without_time_passing() -> None:
    wheel = TimingWheel(start_ms=1_000)
    wheel.add(400, "item")
    assert wheel.next_deadline_ms() == 1_000
    assert wheel.advance(1_000) == ["item"]
    assert wheel.advance(1_000) == []


def test_time_that_goes_back_changes_nothing() -> None:
    wheel = TimingWheel(start_ms=1_000)
    wheel.add(1_005, "item")
    assert wheel.advance(10) == []
    assert wheel.advance(1_005) == ["item"]


def test_run_skips_what_an_earlier_callback_cancelled() -> None:
    wheel = TimingWheel()
    called: list[str] = []
    wheel.add(5, lambda: (called.append("first"), second.cancel()))
    second = wheel.add(6, lambda: called.append("second"))
    assert wheel.run(10) == 1
    assert called == ["first"]
    assert not second.pending


def test_run_keeps_the_rest_due_when_a_callback_fails() -> None:
    wheel = TimingWheel()
    called: list[str] = []

    def fail() -> None:
        raise RuntimeError("told to")

    wheel.add(1, fail)
    wheel.add(2, lambda: called.append("later"))
    with pytest.raises(RuntimeError, match="told to"):
        wheel.run(10)
    assert called == []
    assert wheel.run(10) == 1
    assert called == ["later"]


def test_run_leaves_a_timer_that_a_callback_adds_overdue_to_the_next_run() -> None:
    """Otherwise a callback that adds itself again would never return."""
    wheel = TimingWheel()
    called: list[int] = []

    def again() -> None:
        called.append(1)
        wheel.add(0, again)

    wheel.add(1, again)
    assert wheel.run(5) == 1
    assert wheel.run(5) == 1
    assert len(called) == 2


def test_adding_and_cancelling_many_timers_leaves_nothing_behind() -> None:
    """Delayed fetches do this all day: memory must stay flat though the deadlines are far away."""
    wheel = TimingWheel(wheel_size=16)
    for index in range(50_000):
        wheel.add(index % 30_000 + 1, index).cancel()
    assert len(wheel) == 0
    levels = len(wheel._levels)
    assert len(wheel._queue) <= 16 * levels
    assert wheel.next_deadline_ms() is None
    assert wheel._queue == []
