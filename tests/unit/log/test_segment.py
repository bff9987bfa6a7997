"""A segment finds its batches, indexes as Kafka does, and knows when it is full."""

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.kernels import assign_offsets, scan_batch
from barnabas.log.file_pool import FilePool
from barnabas.log.files import DiskFiles
from barnabas.log.segment import INDEX, TIME_INDEX, TRANSACTION_INDEX, Segment, segment_name
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.model.errors import CorruptRecordError, StorageError
from barnabas.records.builder import build_batch

NOW = 1_700_000_000_000


def make(pool, directory, base=0, interval=4096, jitter=0):
    segment = Segment(
        pool,
        str(directory),
        base,
        created_ms=NOW,
        index_interval_bytes=interval,
        jitter_ms=jitter,
    )
    segment.create()
    return segment


def add(segment, offset, count=1, size=10, at=NOW):
    data = bytearray(build_batch([(at + i, b"k", b"v" * size) for i in range(count)]))
    assign_offsets(data, 0, offset, 0)
    segment.append(data, offset + count - 1, at + count - 1, offset + count - 1)
    return len(data)


def reopened(segment, pool, directory):
    segment.finish()
    again = Segment(
        pool,
        str(directory),
        segment.base_offset,
        created_ms=NOW,
        index_interval_bytes=segment.index_interval_bytes,
    )
    again.attach(segment.size_bytes)
    return again


@settings(max_examples=40)
@given(
    shapes=st.lists(
        st.tuples(st.integers(1, 5), st.integers(0, 200), st.integers(0, 3)), max_size=40
    ),
    interval=st.sampled_from([0, 100, 500, 4096]),
    closed=st.booleans(),
)
def test_every_offset_is_found_where_a_plain_search_finds_it(
    tmp_path_factory, shapes, interval, closed
):
    directory = tmp_path_factory.mktemp("segment")
    pool = FilePool(DiskFiles())
    segment = make(pool, directory, base=1000, interval=interval)
    places, offset = [], 1000
    for count, size, gap in shapes:
        offset += gap
        position = segment.size_bytes
        taken = add(segment, offset, count, size)
        offset += count
        places.append((offset - 1, position, taken))
    if closed:
        segment = reopened(segment, pool, directory)
    for probe in range(1000, offset + 3):
        expected = next(((p, size) for last, p, size in places if last >= probe), None)
        assert segment.locate(probe) == expected
    segment.file.close()


def test_the_tail_of_a_long_segment_needs_no_file(pool, disk, tmp_path):
    segment = make(pool, tmp_path)
    for offset in range(1000):
        add(segment, offset)
    segment.file.close()  # any look at the file would fail now
    assert segment.locate(999) is not None
    assert segment.locate(900) is not None
    assert segment.locate(1000) is None
    with pytest.raises(AssertionError, match="was closed"):
        segment.locate(10)


def test_an_index_entry_needs_more_than_the_interval_of_bytes(pool, tmp_path):
    segment = make(pool, tmp_path, interval=150)
    sizes = [add(segment, offset, at=NOW + offset) for offset in range(6)]
    assert sizes == [sizes[0]] * 6
    assert 75 < sizes[0] < 150
    # The first append is never indexed; then every second one passes 150 bytes.
    assert [segment.offset_index.position_of(o) // sizes[0] for o in range(6)] == [0, 0, 2, 2, 4, 4]
    assert segment.time_index.last() == (NOW + 4, 4)


def test_index_files_appear_when_the_segment_is_finished(pool, disk, tmp_path):
    segment = make(pool, tmp_path, base=5, interval=0)
    assert disk.list(str(tmp_path)) == [f"{segment_name(5)}.log"]
    segment.finish()
    assert disk.list(str(tmp_path)) == [f"{segment_name(5)}.log"]
    add(segment, 5)
    add(segment, 6)
    segment.finish()
    assert segment.side_files_changed
    assert disk.read(segment.path(INDEX)) == bytes.fromhex("00000001") + (
        segment.size_bytes // 2
    ).to_bytes(4, "big")
    assert len(disk.read(segment.path(TIME_INDEX))) == 12
    assert disk.read(segment.path(TRANSACTION_INDEX)) is None
    segment.flush_side_files()
    segment.finish()
    assert not segment.side_files_changed
    segment.add_aborted(AbortedTransaction(1, 5, 6, 7))
    segment.finish()
    assert len(disk.read(segment.path(TRANSACTION_INDEX))) == 34


def test_the_last_time_entry_is_written_when_the_segment_is_finished(pool, tmp_path):
    segment = make(pool, tmp_path)
    add(segment, 0, at=NOW + 50)
    add(segment, 1, at=NOW)
    segment.finish()
    assert segment.time_index.last() == (NOW + 50, 0)
    again = reopened(segment, pool, tmp_path)
    assert again.newest() == (NOW + 50, 0)


ROOMY = {"segment_bytes": 10_000, "segment_ms": 1000, "index_bytes": 1200}


def needs_roll(segment, *, size=100, last=10, at=NOW, now=NOW, **limits):
    return segment.needs_roll(size, last, at, now, SimpleNamespace(**{**ROOMY, **limits}))


def test_roll_by_size(pool, tmp_path):
    segment = make(pool, tmp_path)
    used = add(segment, 0)
    assert not needs_roll(segment, size=100, segment_bytes=used + 100)
    assert needs_roll(segment, size=101, segment_bytes=used + 100)


def test_a_first_append_that_fits_never_rolls(pool, tmp_path):
    segment = make(pool, tmp_path)
    assert not needs_roll(segment, size=100, segment_bytes=100, now=NOW + 10**9)


def test_roll_by_the_time_of_the_records(pool, tmp_path):
    segment = make(pool, tmp_path, jitter=100)
    add(segment, 0, at=NOW)
    assert not needs_roll(segment, at=NOW + 900, now=NOW + 10**9)
    assert needs_roll(segment, at=NOW + 901, now=NOW)
    again = reopened(segment, pool, tmp_path)
    assert again.first_timestamp == NOW
    assert needs_roll(again, at=NOW + 1001)


def test_roll_by_the_age_of_the_segment_when_records_have_no_time(pool, tmp_path):
    segment = make(pool, tmp_path)
    add(segment, 0, at=-1)
    assert not needs_roll(segment, at=-1, now=NOW + 1000)
    assert needs_roll(segment, at=-1, now=NOW + 1001)


def test_roll_by_a_full_index(pool, tmp_path):
    segment = make(pool, tmp_path, interval=0)
    for offset in range(5):
        add(segment, offset, at=NOW)
    assert len(segment.offset_index) == 4
    assert not needs_roll(segment, index_bytes=40)
    assert needs_roll(segment, index_bytes=32)
    timed = make(pool, tmp_path, base=100, interval=0)
    for offset in range(100, 105):
        add(timed, offset, at=NOW + offset)
    assert len(timed.time_index) == 4
    assert not needs_roll(timed, index_bytes=72, last=200)
    assert needs_roll(timed, index_bytes=60, last=200)


def test_roll_by_the_span_of_offsets(pool, tmp_path):
    segment = make(pool, tmp_path, base=100)
    assert not needs_roll(segment, last=100 + 2**31 - 1)
    assert needs_roll(segment, last=100 + 2**31)


def test_a_failed_write_leaves_the_segment_as_it_was(pool, disk, tmp_path):
    segment = make(pool, tmp_path)
    add(segment, 0)
    before = segment.size_bytes
    disk.room = 30
    with pytest.raises(StorageError):
        add(segment, 1)
    assert (segment.size_bytes, segment.locate(1)) == (before, None)
    assert segment.file.get().size() == before  # what was written of it could outlast a crash
    disk.room = None
    add(segment, 1)
    assert segment.locate(1) == (before, before)


def test_truncation_rebuilds_indexes_and_greatest_timestamp(pool, tmp_path):
    segment = make(pool, tmp_path, interval=0)
    for offset in range(10):
        add(segment, offset, at=NOW + offset)
    segment.add_aborted(AbortedTransaction(1, 2, 3, 4))
    segment.add_aborted(AbortedTransaction(1, 5, 7, 8))
    position, _ = segment.locate(6)
    segment.truncate(position)
    assert segment.newest() == (NOW + 5, 5)
    assert len(segment.offset_index) == 5
    assert [entry.last_offset for entry in segment.aborted] == [3]
    assert segment.locate(6) is None
    assert segment.locate(5) is not None
    add(segment, 6)
    assert segment.locate(6)[0] == position
    assert scan_batch(segment.file.get().pread(61, position)).base_offset == 6


def test_preallocated_room_is_given_back(pool, disk, tmp_path):
    segment = Segment(pool, str(tmp_path), 0, created_ms=0, index_interval_bytes=10)
    segment.create(5000)
    assert disk.size(segment.path(".log")) == 5000
    used = add(segment, 0)
    segment.finish()
    assert disk.size(segment.path(".log")) == used


@pytest.mark.parametrize("damage", [None, b"", b"\x01" * 8, b"\x01" * 7])
@pytest.mark.parametrize("suffix", [INDEX, TIME_INDEX])
def test_missing_and_damaged_indexes_are_made_again(pool, disk, tmp_path, suffix, damage):
    segment = make(pool, tmp_path, interval=0)
    for offset in range(4):
        add(segment, offset, at=NOW + offset)
    segment.add_aborted(AbortedTransaction(1, 2, 3, 4))
    again = reopened(segment, pool, tmp_path)
    if damage is None:
        disk.unlink(segment.path(suffix))
    else:
        disk.write(segment.path(suffix), damage)
    assert again.locate(3) == segment.locate(3)
    assert again.locate(0) == segment.locate(0)
    if not (suffix == TIME_INDEX and damage == b""):  # an empty one is what no records leave
        assert again.newest() == (NOW + 3, 3)
    assert [entry.last_offset for entry in again.aborted] == [3]


def test_a_rebuild_that_meets_a_damaged_batch_changes_nothing(pool, disk, tmp_path):
    """Aborted transactions and times that are known are not forgotten for half an index."""
    segment = make(pool, tmp_path, interval=100)
    size, *_ = [add(segment, offset, at=NOW + offset) for offset in range(10)]
    transaction = AbortedTransaction(5, 1, 9, 10)
    segment.add_aborted(transaction)
    segment = reopened(segment, pool, tmp_path)
    assert segment.newest() == (NOW + 9, 9)
    assert segment.aborted == [transaction]
    places = [segment.offset_index.position_of(offset) for offset in range(10)]
    segment.file.get().pwrite(b"\x07", 6 * size + 16)  # no magic of a batch
    for _ in range(2):
        with pytest.raises(CorruptRecordError):
            segment.locate(6)
        assert segment.aborted == [transaction]
        assert segment.newest() == (NOW + 9, 9)
        assert [segment.offset_index.position_of(offset) for offset in range(10)] == places
    assert segment.locate(8) == (8 * size, size)
    segment.file.close()


def test_remove_deletes_all_files_but_a_reader_can_finish(pool, disk, tmp_path):
    segment = make(pool, tmp_path)
    add(segment, 0)
    segment.finish()
    file = segment.file.pin()
    segment.remove()
    assert disk.list(str(tmp_path)) == []
    assert len(file.pread(10, 0)) == 10
    segment.file.unpin()
