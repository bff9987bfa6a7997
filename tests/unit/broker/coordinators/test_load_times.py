"""The loads of the last half minute."""

from __future__ import annotations

from barnabas.broker.coordinators.load_times import WINDOW_MS, LoadTimes


def test_the_longest_and_the_average_of_recent_loads() -> None:
    times = LoadTimes()
    assert (times.longest_ms(0), times.average_ms(0)) == (0, 0)
    times.loaded(300, 1000)
    times.loaded(100, 1000 + WINDOW_MS)
    assert (times.longest_ms(1000 + WINDOW_MS), times.average_ms(1000 + WINDOW_MS)) == (300, 200)
    assert (times.longest_ms(1001 + WINDOW_MS), times.average_ms(1001 + WINDOW_MS)) == (100, 100)
    assert times.longest_ms(1001 + 2 * WINDOW_MS) == 0
