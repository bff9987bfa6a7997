"""Text of others can neither forge a line nor fill the log."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.logging.text import TEXT_MAX, cut, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders-2026", "orders-2026"),
        ("Grüße, 世界", "Grüße, 世界"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x1b[2J\x00\x7f\x9b", r"\x1b[2J\x00\x7f\x9b"),
        ("a\u2028b\u2029\u0085", r"a\u2028b\u2029\x85"),
        ("\u202eadmin\u2066", r"\u202eadmin\u2066"),
        ("\udcff", r"\udcff"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_what_could_look_like_something_else_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text())
def test_the_result_is_one_printable_line(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert shown.splitlines() in ([shown], [])


def test_long_text_is_cut() -> None:
    assert cut("x" * TEXT_MAX) == "x" * TEXT_MAX
    assert cut("x" * (TEXT_MAX + 1)) == "x" * TEXT_MAX + "…"
    assert cut("abc", 2) == "ab…"
