"""Rates and their limits: what counts, for how long, and when to rest."""

from __future__ import annotations

import pytest

from barnabas.timing.throttle import UNLIMITED, Throttle, WindowedRate


def test_a_rate_is_an_average_of_the_last_windows() -> None:
    rate = WindowedRate()
    assert rate.per_second(0) == 0
    rate.record(500, 10_000)
    assert rate.per_second(10_000) == 500, "not over no time at all"
    rate.record(500, 10_900)
    assert rate.per_second(10_900) == 1000
    assert rate.per_second(12_000) == 500
    rate.record(4000, 14_000)
    assert rate.per_second(14_000) == 1250
    assert rate.per_second(20_900) == pytest.approx(5000 / 10.9)
    assert rate.per_second(21_000) == pytest.approx(4000 / 7), "the first window is forgotten"
    assert rate.per_second(60_000) == 0


def test_a_throttle_lets_as_much_through_as_it_says() -> None:
    """A copier that asks each millisecond gets the limit in the long run, and never twice."""
    throttle = Throttle(lambda: 1000, WindowedRate())
    copied = 0
    for now_ms in range(60_000):
        if not throttle.is_exceeded(now_ms):
            throttle.record(10, now_ms)
            copied += 10
    assert 50_000 <= copied <= 66_000


def test_limits_act_when_they_change() -> None:
    limits = [UNLIMITED]
    throttle = Throttle(lambda: limits[0], WindowedRate())
    throttle.record(10**9, 0)
    assert not throttle.is_exceeded(0)
    limits[0] = 10**6
    assert throttle.is_exceeded(0)
    limits[0] = 10**9
    assert not throttle.is_exceeded(0)
    limits[0] = 0
    assert throttle.is_exceeded(0)
    assert not Throttle(lambda: 0, WindowedRate()).is_exceeded(0), "nothing was copied yet"


def test_how_long_to_rest() -> None:
    rate = WindowedRate()
    assert rate.wait_ms(1000, 0) == 0
    rate.record(3000, 5000)
    assert rate.wait_ms(1000, 5000) == 2000, "a second has been granted"
    assert rate.wait_ms(1000, 7000) == 1000
    assert rate.wait_ms(1000, 8000) == 0
    assert rate.wait_ms(0, 8000) > 0
    assert not Throttle(lambda: UNLIMITED, WindowedRate()).wait_ms(0)
    resting = Throttle(lambda: 1000, WindowedRate())
    now_ms = 0
    for _ in range(100):
        resting.record(500, now_ms)
        now_ms += resting.wait_ms(now_ms)
    assert 45_000 <= now_ms <= 52_000, "50 kB at 1 kB per second"
