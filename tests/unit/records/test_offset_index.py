"""The sparse index answers as a plain search over its entries does, and survives its file."""

import struct
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.model.errors import CorruptFileError
from barnabas.records.offset_index import OffsetIndex, positions_in

steps = st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 5000)), max_size=60)


def build(base, gaps):
    offsets = list(accumulate(gap for gap, _ in gaps))
    positions = list(accumulate(gap for _, gap in gaps))
    index = OffsetIndex(base)
    for offset, position in zip(offsets, positions, strict=True):
        index.append(base + offset, position)
    return index, [(base + o, p) for o, p in zip(offsets, positions, strict=True)]


@given(st.integers(0, 2**40), steps, st.integers(-10, 70_000), st.integers(0, 400_000))
def test_look_ups_match_a_plain_search(base, gaps, probe, position):
    index, entries = build(base, gaps)
    below = [p for o, p in entries if o <= base + probe]
    assert index.position_of(base + probe) == (below[-1] if below else 0)
    after = [o for o, p in entries if p >= position]
    assert index.offset_after(position) == (after[0] if after else None)
    assert index.last_position() == (entries[-1][1] if entries else 0)


@given(st.integers(0, 2**40), steps, st.integers(0, 64))
def test_the_file_reads_back_also_with_a_preallocated_tail(base, gaps, zeros):
    index, entries = build(base, gaps)
    data = index.encode()
    assert data == b"".join(struct.pack(">ii", o - base, p) for o, p in entries)
    size = entries[-1][1] + 1 if entries else 0
    again = OffsetIndex.decode(base, data + bytes(8 * zeros), size)
    assert again.encode() == data
    assert len(again) == len(entries)


@given(steps, st.integers(0, 400_000))
def test_truncate_drops_appends_from_a_position_on(gaps, position):
    index, entries = build(7, gaps)
    index.truncate(position)
    assert len(index) == len([p for _, p in entries if p < position])


@pytest.mark.parametrize(
    ("data", "log_size"),
    [
        (b"\0" * 7, 100),
        (struct.pack(">ii", 1, 200), 100),
        (struct.pack(">iiii", 1, 50, 2, 40), 100),
        (struct.pack(">iiii", 5, 40, 5, 50), 100),
        (struct.pack(">ii", -1, 40), 100),
    ],
)
def test_impossible_files_are_refused(data, log_size):
    with pytest.raises(CorruptFileError):
        OffsetIndex.decode(0, data, log_size)


def test_an_offset_beyond_the_relative_range_can_be_looked_up():
    index, entries = build(10, [(5, 100)])
    assert index.position_of(10 + 2**40) == entries[-1][1]


def test_positions_are_read_of_whole_entries_only():
    index = OffsetIndex(100)
    index.append(105, 40)
    index.append(109, 90)
    assert list(positions_in(index.encode() + b"\0\0\0")) == [40, 90]
    assert list(positions_in(b"")) == []
