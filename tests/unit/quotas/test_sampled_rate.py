"""Rates and throttle times: the cases that Kafka's own classes compute, to the millisecond."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.quotas.sampled_rate import SampledAverage, SampledRate, Windows, rounded


def throttled(limit: float, *events: tuple[int, float]) -> list[int]:
    """Record values at times, and return the throttle time after each."""
    rate = SampledRate(Windows())
    found = []
    for now_ms, value in events:
        rate.record(value, now_ms)
        found.append(rate.throttle_ms(limit, now_ms))
    return found


def test_a_burst_of_all_windows_but_one_is_free() -> None:
    """The byte after it costs the first millisecond."""
    assert throttled(1000, (0, 10000), (0, 1)) == [0, 1]


def test_a_burst_is_forgotten_all_at_once() -> None:
    """Resting as long as demanded does not help: the burst counts until it has expired."""
    events = [(0, 15000), (5000, 1), (10000, 1), (10999, 1), (11000, 1)]
    assert throttled(1000, *events) == [5000, 5001, 5002, 4004, 0]


def test_a_steady_rate_of_twice_the_limit() -> None:
    """Throttling starts after half of the windows, and settles."""
    times = range(0, 20001, 500)
    found = dict(zip(times, throttled(1000, *((each, 1000) for each in times)), strict=True))
    assert not any(found[each] for each in times if each < 5000)
    assert [found[each] for each in (5000, 5500, 6000, 10000)] == [1000, 1500, 3000, 11000]
    assert [found[each] for each in range(11000, 20001, 500)] == [12000, 11500] * 9 + [12000]


def test_samples_expire_one_by_one() -> None:
    """Each is counted until its last value is all windows old."""
    rate = SampledRate(Windows())
    found = []
    for now_ms, value in ((0, 5000), (1000, 5000), (2000, 2000)):
        rate.record(value, now_ms)
        found.append(rate.throttle_ms(1000, now_ms))
    assert found == [0, 0, 2000]
    measured = [rate.per_second(now_ms) for now_ms in (10500, 11000, 12000, 13000)]
    assert measured == pytest.approx([1142.857, 700, 200, 0], abs=0.001)


def test_shares_of_a_thread() -> None:
    """Percent of a second count like bytes; who decides about throttling caps the time."""
    assert throttled(1, (0, 20)) == [10000]
    assert throttled(1, (0, 10), (10, 0.5)) == [0, 490]


def test_what_was_taken_back_does_not_count() -> None:
    """A response that is never sent is measured again as often as it is asked for."""
    rate = SampledRate(Windows())
    now_ms = 0
    for _ in range(20):
        rate.record(12000, now_ms)
        throttle_ms = rate.throttle_ms(1000, now_ms)
        rate.record(-12000, now_ms)
        assert throttle_ms == 2000
        now_ms += throttle_ms
    assert rate.per_second(now_ms) == 0


def test_connections_at_one_instant() -> None:
    """Ten a second allow a hundred at once, and the next one waits its own share."""
    assert throttled(10, *[(0, 1)] * 101) == [0] * 100 + [100]
    assert throttled(1, *[(0, 1)] * 11) == [0] * 10 + [1000]


def test_other_windows() -> None:
    """Two windows of 200 ms: one of them full at once."""
    rate = SampledRate(Windows(2, 200))
    assert Windows(2, 200).burst_ms == 200
    rate.record(200, 0)
    assert rate.throttle_ms(1000, 0) == 0
    rate.record(100, 0)
    assert rate.throttle_ms(1000, 0) == 100
    assert rate.throttle_ms(1000, 399) == 0
    assert rate.per_second(400) == 0


def test_a_long_run_needs_no_more_samples_than_windows() -> None:
    """Memory does not grow with time."""
    rate = SampledRate(Windows(3, 10))
    for now_ms in range(0, 10_000, 7):
        rate.record(1, now_ms)
    assert len(rate._samples) == 4  # one more than windows


def test_the_average_is_of_the_last_windows() -> None:
    """Old values leave it."""
    average = SampledAverage(Windows())
    assert average.value(0) == 0
    average.record(100, 0)
    average.record(300, 500)
    assert average.value(600) == 200
    average.record(10, 11000)
    assert average.value(11499) == pytest.approx(410 / 3)
    assert average.value(11500) == 10


def test_rounding_is_half_up() -> None:
    """Python rounds half to even."""
    assert [rounded(each) for each in (0.4, 0.5, 1.5, 2.5)] == [0, 1, 2, 3]


class Naive:
    """The same arithmetic, as Kafka writes it: a ring of samples, added up each time."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.ring: list[list[float]] = []  # start, last, total
        self.current = 0

    def record(self, value: float, now_ms: int) -> None:
        if not self.ring:
            self.ring.append([now_ms, now_ms, 0])
        if now_ms - self.ring[self.current][0] >= self.windows.size_ms:
            self.current = (self.current + 1) % (self.windows.num + 1)
            if self.current == len(self.ring):
                self.ring.append([now_ms, now_ms, 0])
            else:
                self.ring[self.current] = [now_ms, now_ms, 0]
        self.ring[self.current][2] += value
        self.ring[self.current][1] = now_ms

    def measure(self, now_ms: int) -> tuple[float, int]:
        if not self.ring:
            self.ring.append([now_ms, now_ms, 0])
        for sample in self.ring:
            if now_ms - sample[1] >= self.windows.num * self.windows.size_ms:
                sample[:] = [now_ms, now_ms, 0]
        elapsed_ms = now_ms - int(min(sample[0] for sample in self.ring))
        full = elapsed_ms // self.windows.size_ms
        if full < self.windows.num - 1:
            elapsed_ms += (self.windows.num - 1 - full) * self.windows.size_ms
        return sum(sample[2] for sample in self.ring), max(elapsed_ms, 1)


@given(
    num=st.integers(1, 4),
    steps=st.lists(
        st.tuples(st.integers(0, 60), st.sampled_from(["record", "measure"]), st.integers(-5, 9)),
        max_size=60,
    ),
)
def test_it_is_kafkas_ring_of_samples(num: int, steps: list[tuple[int, str, int]]) -> None:
    """Whatever is recorded and measured, and when."""
    windows = Windows(num, 10)
    rate, naive = SampledRate(windows), Naive(windows)
    now_ms = 1000
    for later_ms, what, value in steps:
        now_ms += later_ms
        if what == "record":
            rate.record(value, now_ms)
            naive.record(value, now_ms)
        else:
            assert rate.measure(now_ms) == naive.measure(now_ms)
    assert rate.measure(now_ms) == naive.measure(now_ms)


@given(
    num=st.integers(1, 4),
    limit=st.sampled_from([1.0, 100.0, 1000.0, float("inf")]),
    steps=st.lists(st.tuples(st.integers(0, 60), st.integers(-5, 9)), max_size=60),
)
def test_recording_with_a_limit_is_both_steps_in_one(
    num: int, limit: float, steps: list[tuple[int, int]]
) -> None:
    windows = Windows(num, 10)
    once, twice = SampledRate(windows), SampledRate(windows)
    now_ms = 1000
    for later_ms, value in steps:
        now_ms += later_ms
        twice.record(value, now_ms)
        assert once.record_limited(value, limit, now_ms) == twice.throttle_ms(limit, now_ms)
        assert once.measure(now_ms) == twice.measure(now_ms)
