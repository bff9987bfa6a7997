"""Patterns of clients: whole names, clear errors, and no pattern that can stall a broker."""

from __future__ import annotations

import pytest

from barnabas.model.errors import InvalidValueError
from barnabas.model.patterns import LENGTH_MAX, compile_pattern


def test_the_whole_text_must_match() -> None:
    pattern = compile_pattern("orders-.*")
    assert pattern.fullmatch("orders-1") is not None
    assert pattern.fullmatch("my-orders-1") is None


def test_a_pattern_that_defeats_backtracking_matchers_is_harmless() -> None:
    """Backtracking would take longer than the universe has for this one."""
    assert compile_pattern("(a+)+b").fullmatch("a" * 249) is None


@pytest.mark.parametrize("text", ["(", "[a", "(?=a)", "x" * (LENGTH_MAX + 1)])
def test_what_is_no_pattern_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError, match=r"regular expression|at most"):
        compile_pattern(text)
