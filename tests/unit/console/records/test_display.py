"""Strangers' bytes as text that is safe to look at."""

from __future__ import annotations

from datetime import UTC, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.records.display import (
    count_text,
    cut_utf8,
    hex_dump,
    size_text,
    time_text,
    visible,
    visible_line,
)
from barnabas.console.zone import zone_of


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünïcode 😀\n\ttoo", "plain ünïcode 😀\n\ttoo"),
        ("\0\x07\x1b\r", "␀␇␛␍"),
        ("\x7f\x85", "␡⟨U+0085⟩"),
        ("\u202egpj.exe", "⟨U+202E⟩gpj.exe"),
        ("a\u200bb\ufeff", "a⟨U+200B⟩b⟨U+FEFF⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("\u2028", "⟨U+2028⟩"),
    ],
)
def test_nothing_is_hidden(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(st.characters(exclude_categories=[])))
def test_what_is_shown_can_be_sent_and_stays_the_same(text: str) -> None:
    shown = visible(text)
    shown.encode()
    assert visible(shown) == shown
    assert "\n" not in visible_line(text)
    assert "\t" not in visible_line(text)


def test_hex_dump() -> None:
    assert hex_dump(b"0123456789abcdef\0\xff").split("\n") == [
        "00000000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef",
        "00000010  00 ff" + " " * 44 + "..",
    ]


def test_zones() -> None:
    assert zone_of("+05:30").utcoffset(None) == timedelta(hours=5, minutes=30)
    assert zone_of("-01:00").utcoffset(None) == -timedelta(hours=1)
    assert time_text(0, zone_of("Europe/Berlin")) == "1970-01-01 01:00:00.000+01:00"
    for name in ("../../etc/passwd", "Nowhere", "", "Europe", "\0", "a" * 1000):
        assert zone_of(name) is UTC


def test_times() -> None:
    assert time_text(1_700_000_000_123) == "2023-11-14 22:13:20.123+00:00"
    assert time_text(-1) == "no time"
    assert time_text(2**63 - 1) == f"{2**63 - 1} ms"
    assert time_text(-(2**63)) == f"{-(2**63)} ms"
    assert time_text(253402300799999, zone_of("+14:00")).endswith(" ms")


def test_amounts() -> None:
    assert size_text(999) == "999 B"
    assert size_text(12_345_678) == "12.3 MB"
    assert size_text(10**18).endswith(" TB")
    assert count_text(1_234_567) == "1\u202f234\u202f567"


@given(st.text(max_size=20), st.integers(0, 60))
def test_characters_are_not_cut(text: str, limit: int) -> None:
    cut = cut_utf8(text.encode(), limit)
    assert len(cut) <= limit
    assert text.startswith(cut.decode())
