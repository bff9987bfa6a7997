"""How fast numbers change, from what pages have seen of them."""

from __future__ import annotations

import pytest

from barnabas.console import rates as rates_module
from barnabas.console.rates import Rates, drained_ms, trend


def test_a_rate_is_known_after_two_looks_that_are_apart() -> None:
    rates = Rates()
    rates.note("g", 100.0, 10, 50)
    assert rates.per_second("g") is None
    rates.note("g", 100.5, 20, 60)  # another viewer, at the same time
    assert rates.per_second("g") is None
    rates.note("g", 110.0, 30, 100)
    assert rates.per_second("g") == (2.0, 5.0)
    assert rates.per_second("another") is None


def test_it_is_that_of_the_last_minute() -> None:
    rates = Rates()
    for second in range(0, 200, 10):
        rates.note("g", second, min(second, 100))
    assert rates.per_second("g") == (0.0,)


def test_smaller_numbers_or_more_of_them_begin_from_scratch() -> None:
    rates = Rates()
    rates.note("g", 0.0, 100)
    rates.note("g", 10.0, 50)
    assert rates.per_second("g") is None
    rates.note("g", 20.0, 60)
    assert rates.per_second("g") == (1.0,)
    rates.note("g", 30.0, 60, 1)
    assert rates.per_second("g") is None


def test_the_longest_unused_key_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates_module, "KEYS_MAX", 2)
    rates = Rates()
    for second in (0.0, 10.0):
        rates.note("a", second, second)
        rates.note("b", second, second)
    rates.note("a", 20.0, 20.0)
    rates.note("c", 20.0, 0.0)
    assert rates.per_second("a") == (1.0,)
    assert rates.per_second("b") is None


@pytest.mark.parametrize(
    ("lag", "read", "written", "text", "gone_ms"),
    [
        (None, 1.0, 1.0, "", None),
        (5, None, None, "", None),
        (0, 5.0, 5.0, "none", 0.0),
        (10, 100.0, 101.0, "steady", None),
        (10, 0.0, 0.0, "steady", None),
        (10, 5.0, 7.5, "grows by 2.5 a second", None),
        (10, 7.5, 5.0, "falls by 2.5 a second", 4000.0),
    ],
)
def test_a_lag_has_a_trend_and_a_time_until_it_is_gone(
    lag: int | None, read: float | None, written: float | None, text: str, gone_ms: float | None
) -> None:
    assert trend(lag, read, written) == text
    assert drained_ms(lag, read, written) == gone_ms
