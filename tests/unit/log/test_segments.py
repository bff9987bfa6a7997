"""The list of segments: which one holds an offset, and what is read from where."""

import pytest

from barnabas.log.file_pool import LoadedIndexes
from barnabas.log.segment import Segment
from barnabas.log.segments import Segments
from barnabas.records.batch import read_headers
from barnabas.records.builder import build_batch

NOW = 1_700_000_000_000


@pytest.fixture
def segments(pool, tmp_path):
    """Segments at 10, 20 and 30; the first two end with a gap, as compaction leaves it."""
    made = []
    for base in (10, 20, 30):
        segment = Segment(pool, str(tmp_path), base, created_ms=NOW, index_interval_bytes=4096)
        segment.create()
        for offset in (base, base + 2):
            data = build_batch([(NOW, b"k", b"v")], base_offset=offset)
            segment.append(data, offset, NOW, offset)
        made.append(segment)
    return Segments(made)


def test_which_segment_holds_an_offset(segments):
    assert [segments.index_of(o) for o in (0, 10, 19, 20, 29, 30, 99)] == [0, 0, 0, 1, 1, 2, 2]
    assert [s.base_offset for s in segments.starting_at(25)] == [20, 30]
    assert segments.base_after(segments[0]) == 20
    assert segments.base_after(segments.active) is None
    assert len(segments) == 3
    assert segments.size_bytes == sum(s.size_bytes for s in segments)


@pytest.mark.parametrize(("offset", "base"), [(10, 10), (12, 10), (13, 20), (25, 30), (32, 30)])
def test_a_gap_is_read_over(segments, offset, base):
    piece = segments.read(offset, 10_000, None, True)
    assert piece.segment_base_offset == base
    assert piece.size > 0
    piece.release()


def test_nothing_is_found_behind_the_last_batch(segments):
    assert segments.read(33, 10_000, None, True).size == 0


def test_the_bound_counts_in_the_segment_that_is_read(segments):
    one = segments[0].size_bytes // 2
    sizes = []
    for bound in (11, 12, 13, 25, 30, 31):
        piece = segments.read(10, 10_000, bound, True)
        sizes.append(piece.size // one)
        piece.release()
    assert sizes == [1, 1, 2, 2, 2, 2]


def test_indexes_that_were_read_leave_memory_again(open_log, batch, pool):
    pool.loaded_indexes = LoadedIndexes(3)
    log = open_log(segment_bytes=300, index_interval_bytes=1)
    for _ in range(60):
        log.append_as_leader(batch(), 0, NOW)
    assert len(log.segments) > 10
    for offset in [*range(60), *range(60)]:
        piece = log.read(offset, 1)
        assert read_headers(piece.read())[0].base_offset == offset
        piece.release()
        assert len(pool.loaded_indexes) <= 3
    held = [s for s in log.segments if s._offset_index is not None]
    assert len(held) <= 4  # and the active one
    log.truncate_to(0, NOW)
    assert len(pool.loaded_indexes) <= 1


def test_segments_above_an_offset_can_be_removed(segments, disk, tmp_path):
    segments.remove_above(25)
    assert [s.base_offset for s in segments] == [10, 20]
    assert segments.active.base_offset == 20
    segments.remove_above(0)
    assert [s.base_offset for s in segments] == [10]
    assert disk.list(str(tmp_path)) == [f"{10:020d}.log"]
