"""Lag in seconds: against all that was ever appended, in bounded memory."""

from __future__ import annotations

from bisect import bisect_right

from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.monitoring import lag_clock
from barnabas.broker.monitoring.lag_clock import HOUR_MS, PRECISION, SAMPLES_MAX, LagClock
from barnabas.model.ids import TopicPartition

KEY, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)
START_MS = 1_700_000_000_000
SECOND = 1000


def sampled(ends: list[int], start_ms: int = START_MS) -> LagClock:
    """Return a clock that has seen these ends, one a second."""
    clock = LagClock()
    for second, end in enumerate(ends):
        clock.sample(KEY, end, start_ms + second * SECOND)
    return clock


def test_a_steady_partition_is_measured_between_samples() -> None:
    clock = sampled([10 * second for second in range(100)])
    now_ms = START_MS + 99 * SECOND
    assert clock.lag_ms(KEY, 990, now_ms) == 0
    assert clock.lag_ms(KEY, 985, now_ms) == 500
    assert clock.lag_ms(KEY, 890, now_ms) == 10 * SECOND
    assert clock.lag_ms(KEY, 0, now_ms) == 99 * SECOND


def test_nothing_is_said_of_what_is_older_or_never_seen() -> None:
    clock = sampled([500, 510])
    assert clock.lag_ms(KEY, 499, START_MS + SECOND) is None
    assert clock.known_for_ms(KEY, START_MS + SECOND) == SECOND
    assert clock.lag_ms(OTHER, 5, START_MS) is None
    assert clock.known_for_ms(OTHER, START_MS) is None


def test_a_pause_does_not_make_the_next_record_older() -> None:
    """What is appended after an idle hour was appended then, not in the middle of the hour."""
    clock = sampled([7] * 3600 + [8])
    assert clock.lag_ms(KEY, 7, START_MS + 3600 * SECOND) == SECOND
    assert len(clock._rings[KEY].times) == 3


def test_a_truncation_takes_back_what_was_seen() -> None:
    clock = sampled([10, 20, 30, 15])
    now_ms = START_MS + 3 * SECOND
    assert clock.lag_ms(KEY, 15, now_ms) == 0
    assert clock.lag_ms(KEY, 20, now_ms) == 0
    lag_ms = clock.lag_ms(KEY, 12, now_ms)
    assert lag_ms is not None
    assert SECOND < lag_ms < 3 * SECOND


def test_partitions_that_nobody_reads_are_forgotten() -> None:
    clock = LagClock()
    clock.sample(KEY, 1, START_MS)
    clock.sample(OTHER, 1, START_MS)
    clock.retain({OTHER})
    assert len(clock) == 1
    assert clock.lag_ms(KEY, 0, START_MS) is None


def test_there_are_not_more_rings_than_allowed() -> None:
    clock = LagClock()
    for number in range(lag_clock.RINGS_MAX + 5):
        clock.sample(TopicPartition("t", number), 1, START_MS)
    assert len(clock) == lag_clock.RINGS_MAX


rates = st.lists(
    st.tuples(st.integers(1, 600), st.sampled_from([0, 0, 1, 3, 1000])), min_size=1, max_size=40
)


@given(rates, st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_a_lag_is_as_exact_as_promised(
    stretches: list[tuple[int, int]], where: list[float]
) -> None:
    """Compared with all samples ever taken: between the two around an offset, or near for its
    age."""
    ends = [100]
    for seconds, rate in stretches:
        ends += [ends[-1] + rate * (second + 1) for second in range(seconds)]
    clock = sampled(ends)
    now_ms = START_MS + (len(ends) - 1) * SECOND
    times = [START_MS + second * SECOND for second in range(len(ends))]
    ring = clock._rings[KEY]
    assert len(ring.times) <= SAMPLES_MAX
    for fraction in where:
        offset = 100 + int((ends[-1] - 100) * fraction)
        lag_ms = clock.lag_ms(KEY, offset, now_ms)
        if offset >= ends[-1]:
            assert lag_ms == 0
            continue
        before = bisect_right(ends, offset) - 1  # the last sample without the record
        most_ms, least_ms = now_ms - times[before], now_ms - times[before + 1]
        if lag_ms is None:
            assert most_ms > HOUR_MS
            continue
        tolerance_ms = most_ms // PRECISION + SECOND
        assert least_ms - tolerance_ms <= lag_ms <= most_ms + tolerance_ms


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10**6)), max_size=2000))
def test_it_stays_bounded_whatever_comes(samples: list[tuple[int, int]]) -> None:
    """Clocks that jump, ends that fall: neither grows the ring nor breaks its order."""
    clock, now_ms = LagClock(), START_MS
    for step_ms, end in samples:
        now_ms += step_ms - 10
        clock.sample(KEY, end, now_ms)
        lag_ms = clock.lag_ms(KEY, end - 1, now_ms)
        assert lag_ms is None or lag_ms >= 0
    if samples:
        ring = clock._rings[KEY]
        assert len(ring.times) == len(ring.ends) <= SAMPLES_MAX
        assert list(ring.times) == sorted(ring.times)
        assert list(ring.ends) == sorted(ring.ends)


def test_a_long_life_is_thinned_not_forgotten() -> None:
    """After three hours of appends the lag of fifty minutes is still known."""
    clock = sampled([5 * second for second in range(3 * 3600)])
    now_ms = START_MS + (3 * 3600 - 1) * SECOND
    for seconds in (1, 30, 600, 3000):
        lag_ms = clock.lag_ms(KEY, 5 * (3 * 3600 - 1 - seconds), now_ms)
        assert lag_ms is not None
        assert abs(lag_ms - seconds * SECOND) <= seconds * SECOND // PRECISION + SECOND
    assert clock.lag_ms(KEY, 0, now_ms) is None
