"""Cursors in URLs."""

from __future__ import annotations

import base64
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.records.cursor import Cursor, CursorError, decode_cursor

COUNTS = st.integers(0, 2**62)


@given(
    st.dictionaries(
        st.integers(0, 2**31 - 1),
        st.tuples(st.integers(0, 2**62), st.integers(0, 2**62)).map(
            lambda pair: (min(pair), max(pair))
        ),
        max_size=20,
    ),
    COUNTS,
    COUNTS,
    st.integers(-1, 2**50),
)
def test_cursors_come_back(
    spans: dict[int, tuple[int, int]], total: int, size: int, until: int
) -> None:
    cursor = Cursor(spans, total, 1, size, 2, 3, 4, until)
    assert decode_cursor(cursor.encode()) == cursor


@given(st.text(max_size=100))
def test_other_cursors_are_rejected(text: str) -> None:
    with pytest.raises(CursorError):
        decode_cursor(text)


def test_a_cursor_of_many_partitions_fits_into_a_url() -> None:
    spans = {each: (10**9 + each * 977, 2 * 10**9 + each * 1009) for each in range(500)}
    assert len(Cursor(spans).encode()) < 8_000


def test_a_cursor_that_unpacks_to_much_is_rejected() -> None:
    packed = base64.urlsafe_b64encode(zlib.compress(b"\0" * 10_000_000, 9)).decode()
    with pytest.raises(CursorError):
        decode_cursor(packed)
