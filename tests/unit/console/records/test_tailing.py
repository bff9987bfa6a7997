"""The budget of rows of a live stream; the stream itself is tested with its page."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.records.tailing import RowBudget


@given(
    st.lists(st.tuples(st.integers(0, 500), st.floats(0, 2)), min_size=1, max_size=50),
)
def test_no_second_has_more_rows_than_allowed(rounds: list[tuple[int, float]]) -> None:
    budget = RowBudget(50)
    now_s = 0.0
    shown: list[tuple[float, int]] = []
    for count, pause_s in rounds:
        now_s += pause_s
        allowed = budget.allow(count, now_s)
        assert 0 <= allowed <= count
        shown.append((now_s, allowed))
    for start_s, _ in shown:
        # A full budget may be spent at once, and what comes in that second besides.
        assert sum(n for at_s, n in shown if start_s <= at_s < start_s + 1) <= 100


def test_a_quiet_stream_gets_its_second_back() -> None:
    budget = RowBudget(50)
    assert budget.allow(80, 0.0) == 50
    assert budget.allow(80, 0.1) == 5
    assert budget.allow(80, 10.0) == 50
