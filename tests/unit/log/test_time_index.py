"""The time index keeps ascending timestamps and finds where to start looking."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.log.time_index import TimeIndex
from barnabas.model.errors import CorruptFileError

entries = st.lists(st.tuples(st.integers(-1, 10_000), st.integers(0, 10_000)), max_size=50)


def build(base, pairs):
    index, kept = TimeIndex(base), []
    for timestamp, offset in pairs:
        index.append(timestamp, base + offset)
        if timestamp > (kept[-1][0] if kept else -1):  # no entry without a time, as with Kafka
            kept.append((timestamp, base + offset))
    return index, kept


@given(st.integers(0, 2**40), entries, st.integers(-5, 10_005))
def test_look_ups_match_a_plain_search(base, pairs, probe):
    index, kept = build(base, pairs)
    below = [entry for entry in kept if entry[0] <= probe]
    assert index.floor(probe) == (below[-1] if below else (-1, base))
    assert index.last() == (kept[-1] if kept else (-1, base))
    assert len(index) == len(kept)


@given(st.integers(0, 2**40), entries)
def test_the_file_has_kafkas_layout_and_reads_back(base, pairs):
    index, kept = build(base, pairs)
    data = index.encode()
    assert data == b"".join(struct.pack(">qi", t, o - base) for t, o in kept)
    again = TimeIndex.decode(base, data)
    if kept and kept[-1] != (0, base):
        assert again.encode() == data


def test_a_preallocated_tail_is_not_read():
    data = struct.pack(">qi", 1_700_000_000_000, 5) + bytes(36)
    assert TimeIndex.decode(0, data).last() == (1_700_000_000_000, 5)


def test_truncate_drops_entries_of_the_offset_and_above():
    index, _ = build(100, [(1, 0), (2, 5), (3, 9)])
    index.truncate(105)
    assert index.last() == (1, 100)


@pytest.mark.parametrize(
    "data",
    [b"\0" * 11, struct.pack(">qiqi", 5, 1, 4, 2), struct.pack(">qi", 5, -1)],
)
def test_impossible_files_are_refused(data):
    with pytest.raises(CorruptFileError):
        TimeIndex.decode(0, data)
