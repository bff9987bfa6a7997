"""Unsigned varints and the skipping of tags."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.primitives import SMALL_UVARINTS, Malformed, long_uvarint, skip_tags, uvarint


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (0, b"\x00"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (300, b"\xac\x02"),
        (16384, b"\x80\x80\x01"),
        (2**32 - 1, b"\xff\xff\xff\xff\x0f"),
    ],
)
def test_known_values(value: int, data: bytes) -> None:
    assert uvarint(value) == data
    if value > 127:
        assert long_uvarint(data + b"x", 1, data[0]) == (value, len(data))
    else:
        assert SMALL_UVARINTS[value] == data


@given(st.integers(128, 2**32 - 1))
def test_what_is_written_is_read_back(value: int) -> None:
    data = uvarint(value)
    assert long_uvarint(data, 1, data[0]) == (value, len(data))


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff\x10", b"\x80\x80\x80\x80\x80\x00"])
def test_more_than_32_bits_are_refused(data: bytes) -> None:
    with pytest.raises(Malformed, match="32 bits"):
        long_uvarint(data, 1, data[0])


def test_tags_are_skipped() -> None:
    data = b"\x00\x02ab" + b"\x81\x01\x80\x01" + bytes(128)
    assert skip_tags(data, 0, 2) == len(data)


def test_tags_that_do_not_rise_or_do_not_fit_are_refused() -> None:
    with pytest.raises(Malformed, match="tag 1 comes after tag 1"):
        skip_tags(b"\x01\x00\x01\x00", 0, 2)
    with pytest.raises(Malformed, match="tag 1 of 9 bytes does not fit"):
        skip_tags(b"\x01\x09abc", 0, 1)
    with pytest.raises(IndexError):
        skip_tags(b"\x01\x00", 0, 2)
