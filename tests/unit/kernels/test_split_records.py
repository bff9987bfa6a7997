"""Whole records found by their lengths, the same in both sets of kernels."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.kernels import cython, python
from barnabas.kernels.python import encode_varint


def record(size: int) -> bytes:
    return encode_varint(size) + bytes(size)


def test_whole_records_and_what_the_next_one_takes() -> None:
    data = record(3) + record(200) + record(5)
    assert python.split_records(data, 0, len(data), 3) == (3, 212, 0)
    assert python.split_records(data, 0, len(data), 2) == (2, 206, 0)
    assert python.split_records(data, 0, 100, 3) == (1, 4, 202)
    assert python.split_records(data, 0, 5, 3) == (1, 4, 0)  # half of a length
    assert python.split_records(data, 4, len(data), 9) == (2, 212, 0)
    assert python.split_records(b"\x01", 0, 1, 1) == (0, 0, -1)
    assert python.split_records(b"\xff" * 5, 0, 5, 1) == (0, 0, -1)


@given(
    st.lists(st.integers(0, 300), max_size=6),
    st.binary(max_size=8),
    st.integers(0, 8),
    st.integers(0, 20),
)
def test_twins_agree(sizes: list[int], tail: bytes, count: int, cut: int) -> None:
    data = b"".join(map(record, sizes)) + tail
    end = max(len(data) - cut, 0)
    assert python.split_records(data, 0, end, count) == cython.split_records(data, 0, end, count)
