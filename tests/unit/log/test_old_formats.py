"""Logs with segments of magic 0 and 1, mixed with magic 2: everything that a log does."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any
from zlib import crc32

import pytest
from tests.old_segments import (
    CODECS,
    NOW,
    PER_ENTRY,
    Row,
    every_format,
    make_rows,
    old_entries,
    old_segment,
    segment_name,
)

from barnabas.broker.storage.down_conversion import read_converted
from barnabas.config.topic import TopicOptions
from barnabas.log.compaction.scheduler import examine
from barnabas.log.compaction.steps import Means, compact, run
from barnabas.log.directory import LogDirectory
from barnabas.log.dump import dump_file
from barnabas.log.file_pool import FilePool
from barnabas.log.fork import Fork
from barnabas.log.inspection import inspect_partition
from barnabas.log.partition_log import PartitionLog
from barnabas.log.relocation import Relocation
from barnabas.model.errors import DamagedLogError
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import iterate, read_headers
from barnabas.records.builder import build_batch
from barnabas.records.conversion import to_batches
from barnabas.records.legacy import iterate_messages
from barnabas.replication.partition import Partition
from barnabas.simulation.disk import SimulatedDisk

T0 = TopicPartition("t", 0)
PLACE = "/data/t-0"
ONCE = every_format()


def options(**given: Any) -> TopicOptions:
    settings = {"segment_bytes": 3000, "index_interval_bytes": 300, "retention_ms": -1} | given
    return TopicOptions.parse({k.replace("_", "."): str(v) for k, v in settings.items()})


class Host:
    """A disk with a directory that another broker has left, and ours that opens it."""

    def __init__(
        self,
        segments: dict[int, bytes] | None = None,
        *,
        clean: bool = False,
        disk: SimulatedDisk | None = None,
        **given: Any,
    ) -> None:
        self.disk = disk or SimulatedDisk(Random(1), lambda: NOW)
        self.options = options(**given)
        self.segments = ONCE[0] if segments is None else segments
        self.disk.make_dirs(PLACE)
        for base, data in self.segments.items():
            self.disk.write(f"{PLACE}/{segment_name(base)}", data)
        if clean:
            self.disk.write("/data/.kafka_cleanshutdown", b"")
        for directory in ("/", "/data", PLACE):
            self.disk.flush_dir(directory)
        for base in self.segments:
            self.disk.flush_file(f"{PLACE}/{segment_name(base)}")

    def open(self) -> PartitionLog:
        self.directory = LogDirectory(FilePool(self.disk, limit=4, indexes=3), "/data")
        self.directory.load(lambda topic: self.options, NOW)
        self.log = self.directory.logs[T0]
        self.log.set_high_watermark(self.log.log_end_offset)
        return self.log

    def stored(self) -> dict[int, bytes]:
        """What is on the disk, without segments that hold nothing."""
        names = [name for name in self.disk.list(PLACE) if name.endswith(".log")]
        contents = {int(name[:20]): self.disk.read(f"{PLACE}/{name}") or b"" for name in names}
        return {base: data for base, data in contents.items() if data}


def pieces(log: PartitionLog, offset: int | None = None, max_bytes: int = 400) -> Iterator[bytes]:
    """What a reader gets who asks again after every answer."""
    position = log.log_start_offset if offset is None else offset
    while position < log.log_end_offset:
        piece = log.read(position, max_bytes)
        data = piece.read()
        piece.release()
        yield data
        batches = read_headers(to_batches(data))
        assert batches, position
        position = batches[-1].next_offset


def rows_of(log: PartitionLog, offset: int | None = None, max_bytes: int = 400) -> list[Row]:
    first = log.log_start_offset if offset is None else offset
    return [
        Row(record.offset, record.timestamp, record.key, record.value)
        for data in pieces(log, offset, max_bytes)
        for record in iterate(to_batches(data))
        if record.offset >= first
    ]


@pytest.mark.parametrize("clean", [True, False])
def test_a_directory_of_all_formats_opens_and_nothing_of_it_changes(clean: bool) -> None:
    host = Host(clean=clean)
    log = host.open()
    segments, rows = ONCE
    assert (log.log_start_offset, log.log_end_offset) == (0, len(rows))
    assert [segment.base_offset for segment in log.segments] == list(segments)
    assert rows_of(log) == rows
    for max_bytes in (1, 100, 1 << 20):
        assert rows_of(log, max_bytes=max_bytes) == rows
    assert host.stored() == segments
    host.directory.close(NOW)
    assert host.stored() == segments
    assert rows_of(host.open()) == rows
    assert host.stored() == segments
    assert host.directory.clean


def test_a_closed_segment_of_a_hundred_messages_is_not_cut() -> None:
    data, rows = old_segment(0, 1, "none", 20)
    host = Host({0: data})
    assert rows_of(host.open()) == rows
    assert host.stored() == {0: data}


@pytest.mark.parametrize("clean", [True, False])
def test_every_offset_is_found(clean: bool) -> None:
    log = Host(clean=clean).open()
    rows = ONCE[1]
    for row in rows:
        assert rows_of(log, row.offset, 1)[:1] == [row]
        for data in pieces(log, row.offset, 1):
            assert data in b"".join(ONCE[0].values())
            break


def test_appends_go_on_behind_old_segments() -> None:
    host = Host()
    log = host.open()
    end = log.log_end_offset
    assert log.append_as_leader(build_batch([(NOW, b"k", b"new")]), 3, NOW).first_offset == end
    assert list(log.leader_epochs) == [(0, 260), (3, end)]
    assert len(log.producers) == 0
    assert rows_of(log)[-1] == Row(end, NOW, b"k", b"new")
    log.flush(NOW)
    host.disk.crash()
    assert rows_of(host.open()) == [*ONCE[1], Row(end, NOW, b"k", b"new")]


def test_a_log_of_old_formats_alone_has_no_epochs_and_is_written_on_in_its_last_segment() -> None:
    data, rows = old_segment(0, 1, "gzip")
    host = Host({0: data})
    log = host.open()
    assert list(log.leader_epochs) == []
    log.append_as_leader(build_batch([(NOW, b"k", b"new")]), 0, NOW)
    assert [segment.base_offset for segment in log.segments] == [0]
    assert host.stored()[0].startswith(data)
    log.flush(NOW)
    host.disk.crash()
    log = host.open()
    assert rows_of(log) == [*rows, Row(len(rows), NOW, b"k", b"new")]
    assert list(log.leader_epochs) == [(0, len(rows))]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
def test_a_tail_torn_at_any_byte_is_cut_at_the_last_whole_entry(magic: int, codec: str) -> None:
    data, rows = old_segment(0, magic, codec, 2)
    host = Host({0: data})
    ends = [0]
    while ends[-1] < len(data):
        ends.append(ends[-1] + 12 + int.from_bytes(data[ends[-1] + 8 : ends[-1] + 12], "big"))
    for size in range(ends[-3] + 1, len(data)):
        host.disk.write(f"{PLACE}/{segment_name(0)}", data[:size])
        whole = max(end for end in ends if end <= size)
        log = host.open()
        assert host.stored().get(0, b"") == data[:whole]
        assert log.log_end_offset == ends.index(whole) * len(rows) // (len(ends) - 1)
        assert rows_of(log) == rows[: log.log_end_offset]
        host.directory.abandon()


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
def test_a_wrong_bit_takes_an_old_log_offline(magic: int, codec: str) -> None:
    data, _ = old_segment(0, magic, codec, 3)
    for position in range(12, len(data) // 3):
        changed = bytearray(data)
        changed[position] ^= 0x10
        host = Host({0: bytes(changed)})
        with pytest.raises(KeyError):
            host.open()
        [(partition, damaged)] = host.directory.damaged.items()
        assert partition == T0
        assert f"{PLACE}/{segment_name(0)} at " in damaged.reason
        assert host.stored() == {0: bytes(changed)}
        with pytest.raises(DamagedLogError):
            host.directory.open_log(T0, host.options, NOW)


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("thinned", [0, 1, 2])
def test_a_compacted_directory_without_checkpoints_is_not_cut_at_its_gaps(
    magic: int, thinned: int
) -> None:
    """Compaction by Kafka leaves gaps between segments; in one of them it took more."""
    offsets = [[0, 1, 2], [10, 11, 12], [20, 21, 22]]
    del offsets[thinned][1]
    segments = {}
    for kept in offsets:
        rows = [Row(offset, NOW, b"%d" % offset, b"v") for offset in kept]
        segments[kept[0]] = b"".join(
            build_batch([row[1:]], base_offset=row.offset, leader_epoch=0)
            if magic == 2
            else old_entries([row], magic, "none")
            for row in rows
        )
    host = Host(segments, cleanup_policy="compact")
    with pytest.raises(KeyError):
        host.open()
    assert host.directory.damaged[T0].reason.startswith(
        f"{PLACE}/{segment_name(10)} at 0: offset 10 after 2; no checkpoint says "
    )
    assert host.stored() == segments
    host.directory.abandon()
    # With the checkpoint that belongs to it, all is well.
    host.disk.write("/data/cleaner-offset-checkpoint", b"0\n1\nt 0 20\n")
    assert [row.offset for row in rows_of(host.open())] == [
        each for kept in offsets for each in kept
    ]
    assert host.stored() == segments


def test_times_are_found() -> None:
    log = Host().open()
    rows = ONCE[1]
    timed = [row for row in rows if row.timestamp >= 0]
    for row in timed:
        found = log.find_timestamp(row.timestamp)
        assert found is not None
        assert (found.offset, found.timestamp) == (row.offset, row.timestamp)
    first = log.find_timestamp(0)
    assert first is not None
    assert first.offset == timed[0].offset, "messages of magic 0 have no time"
    newest = log.find_max_timestamp()
    assert newest is not None
    assert newest.offset == rows[-1].offset
    assert log.find_timestamp(NOW + len(rows)) is None


def test_old_index_files_with_the_first_offset_of_a_wrapper_are_used() -> None:
    """So releases wrote them that knew only old formats; there was no time index before 0.10.1."""
    data, rows = old_segment(0, 1, "gzip", 6)
    host = Host({0: data}, clean=True)
    size = len(data) // 6
    ends = [0]
    while ends[-1] < len(data):
        ends.append(ends[-1] + 12 + int.from_bytes(data[ends[-1] + 8 : ends[-1] + 12], "big"))
    entries = [(2 * PER_ENTRY, ends[2]), (4 * PER_ENTRY, ends[4])]
    index = b"".join(o.to_bytes(4, "big") + p.to_bytes(4, "big") for o, p in entries)
    times = (NOW + 29).to_bytes(8, "big") + (29).to_bytes(4, "big")
    host.disk.write(f"{PLACE}/{0:020d}.index", index)
    host.disk.write(f"{PLACE}/{0:020d}.timeindex", times)
    assert [flaw for flaw in inspect_partition(host.disk, PLACE) if flaw.damage] == []
    log = host.open()
    assert size
    for row in rows:
        assert rows_of(log, row.offset, 1)[0] == row
        found = log.find_timestamp(row.timestamp)
        assert found is not None
        assert found.offset == row.offset
    assert host.disk.read(f"{PLACE}/{0:020d}.index") == index


def test_records_are_deleted_and_the_log_is_truncated() -> None:
    rows = ONCE[1]
    for offset in range(0, len(rows), 7):
        host = Host()
        log = host.open()
        log.delete_records_before(offset)
        assert rows_of(log) == rows[offset:]
        log.truncate_to(offset + 3, NOW)
        end = log.log_end_offset
        assert end <= offset + 3
        assert offset + 3 - end < PER_ENTRY
        assert rows_of(log, min(offset, end)) == rows[offset:end]
        log.append_as_leader(build_batch([(NOW, b"k", b"new")]), 3, NOW)
        host.directory.abandon()
        assert rows_of(host.open(), min(offset, end))[-1] == Row(end, NOW, b"k", b"new")


def test_retention_goes_by_time_or_by_the_age_of_the_file() -> None:
    host = Host(retention_ms=1000)
    log = host.open()
    rows = ONCE[1]
    for base in ONCE[0]:
        host.disk.set_mtime_ms(f"{PLACE}/{segment_name(base)}", NOW)
    assert log.expired_before(NOW) == 0
    last_of_magic_0 = max(row.offset for row in rows if row.timestamp < 0 and row.offset < 120)
    assert log.expired_before(NOW + 1001) == last_of_magic_0 + 1
    assert log.expired_before(NOW + 1001 + last_of_magic_0 + 30) == last_of_magic_0 + 31
    assert log.expired_before(NOW + 5000) == len(rows)


@pytest.mark.parametrize("max_bytes", [1, 700, 1 << 20])
def test_a_follower_gets_the_same_bytes(max_bytes: int) -> None:
    leader = Host()
    leader.open()
    disk = SimulatedDisk(Random(2), lambda: NOW)
    directory = LogDirectory(FilePool(disk), "/data")
    log = directory.open_log(T0, leader.options, NOW, topic_id=bytes(16))
    follower = Partition(T0, bytes(16), log, 2)
    while log.log_end_offset < len(ONCE[1]):
        piece = leader.log.read(log.log_end_offset, max_bytes)
        assert follower.append_from_leader(piece.read(), len(ONCE[1]), 0, NOW) > 0
        piece.release()
    assert rows_of(log) == ONCE[1]
    stored = b"".join(disk.read(segment.path(".log")) or b"" for segment in log.segments)
    assert stored == b"".join(ONCE[0].values())
    assert list(log.leader_epochs) == list(leader.log.leader_epochs)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_follower_whose_leader_begins_inside_of_a_wrapper_takes_it_whole(magic: int) -> None:
    data, rows = old_segment(0, magic, "gzip")
    leader = Host({0: data}).open()
    leader.delete_records_before(7)
    disk = SimulatedDisk(Random(2), lambda: NOW)
    log = LogDirectory(FilePool(disk), "/data").open_log(T0, options(), NOW, topic_id=bytes(16))
    log.truncate_all(7, NOW)
    follower = Partition(T0, bytes(16), log, 2)
    for each in pieces(leader):
        follower.append_from_leader(each, len(rows), 7, NOW)
    assert log.segments[0].base_offset == 5
    assert rows_of(log, 7) == rows[7:]
    assert [flaw for flaw in inspect_partition(disk, log.directory) if flaw.damage] == []


def test_moving_and_forking() -> None:
    host = Host()
    log = host.open()
    log.delete_records_before(7)
    target = LogDirectory(FilePool(host.disk), "/other")
    move = Relocation(host.directory, target, log, "1" * 32, NOW)
    moved = move.finish(NOW)
    move.retire()
    assert moved.log_start_offset == 7
    assert rows_of(moved) == ONCE[1][7:]
    stored = b"".join(host.disk.read(each.path(".log")) or b"" for each in moved.segments)
    assert b"".join(ONCE[0].values()).endswith(stored)
    for end in (44, 133, 200, len(ONCE[1])):
        place = TopicPartition(f"f{end}", 0)
        fork = Fork(target, moved, place, b"f" * 16, end, f"{end:032x}")
        fork.link(NOW)
        fork.copy(options(), NOW)
        fork.release()
        forked = fork.settle()
        assert end - PER_ENTRY < forked.log_end_offset <= end
        assert rows_of(forked) == ONCE[1][7 : forked.log_end_offset]


@pytest.mark.parametrize("magic", [0, 1])
def test_old_clients_get_old_formats_as_they_are_stored(magic: int) -> None:
    segments, rows = every_format()
    segments = {base: data for base, data in segments.items() if base < 240}
    rows = rows[:240]
    host = Host({base: data for base, data in segments.items() if not _has_zstd(base)})
    rows = [row for row in rows if not any(_has_zstd(b) and row.offset >= b for b in segments)]
    log = host.open()
    position, found, given = 0, [], b""
    while position < len(rows):
        data = read_converted(log, position, len(rows), 1 << 20, magic, True)
        messages = list(iterate_messages(data))
        assert messages, position
        assert all(data[at] <= magic for at in _magics(data))
        found += [Row(m.offset, m.timestamp, m.key, m.value) for m in messages]
        position = messages[-1].offset + 1
        given += data
    if magic:
        assert found == rows
        assert given == b"".join(host.segments.values())
    else:
        assert found == [row._replace(timestamp=-1) for row in rows]
        assert given.startswith(b"".join(data for base, data in segments.items() if base < 120))


def _has_zstd(base: int) -> bool:
    return base >= 240


def _magics(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        yield at + 16
        at += 12 + int.from_bytes(data[at + 8 : at + 12], "big")


def test_inspection_and_dump() -> None:
    host = Host()
    host.open()
    host.directory.close(NOW)
    flaws = list(inspect_partition(host.disk, PLACE))
    assert [flaw.what for flaw in flaws if not flaw.path.endswith("metadata")] == []
    entries = [
        {**entry, "records": list(entry["records"])}
        for base in ONCE[0]
        for entry in dump_file(host.disk, f"{PLACE}/{segment_name(base)}", records=True)
    ]
    assert all(entry["valid"] for entry in entries)
    assert {entry["magic"] for entry in entries} == {0, 1, 2}
    found = [
        Row(r["offset"], r["timestamp"], r["key"], r["value"])
        for entry in entries
        for r in entry["records"]
    ]
    assert found == ONCE[1]
    for entry in entries:
        offsets = [record["offset"] for record in entry["records"]]
        assert (entry["base_offset"], entry["last_offset"]) == (offsets[0], offsets[-1])
        assert entry["count"] == len(offsets)
    wrappers = [entry for entry in entries if entry["magic"] < 2 and entry["codec"] != "none"]
    assert {entry["codec"] for entry in wrappers} == {"gzip", "snappy", "lz4"}


def test_inspection_tells_of_a_wrapper_that_cannot_be_unpacked() -> None:
    good = old_entries(make_rows(0, 5, 1), 1, "gzip")
    bad = bytearray(good)
    bad[40:50] = b"\xff" * 10
    bad[:8] = (9).to_bytes(8, "big")
    bad[12:16] = crc32(bad[16:]).to_bytes(4, "big")
    more = old_entries([Row(10, NOW, b"k", b"v")], 1, "none")
    host = Host({0: good + bytes(bad) + more})
    log = host.open()
    assert rows_of(log, 10) == [Row(10, NOW, b"k", b"v")]
    [flaw] = [flaw for flaw in inspect_partition(host.disk, PLACE) if flaw.damage]
    assert (flaw.position, flaw.path) == (len(good), f"{PLACE}/{segment_name(0)}")
    assert "gzip" in flaw.what


# -- compaction ---------------------------------------------------------------------------------


MEANS = Means(24 * 1000, 0.9, 512)


def compact_host(host: Host, now_ms: int = NOW) -> bool:
    """Compact the log if it is due; return whether it was."""
    log = host.log
    found = examine(log, now_ms)
    if found is None:
        return False
    files: list[str] = []
    done = run(compact(log, found.first_dirty, found.end, MEANS, now_ms, unlink_later=files.extend))
    log.cleaned_offset = done.end_offset
    host.directory.write_cleaned_offsets()
    for path in files:
        host.disk.unlink(path)
    return True


def newest(rows: list[Row], end: int) -> list[Row]:
    """What compaction must leave of the rows below an offset, and all behind it."""
    last = {row.key: row.offset for row in rows if row.offset < end}
    return [row for row in rows if row.offset >= end or last[row.key] == row.offset]


def open_compacted(disk: SimulatedDisk | None = None, **given: Any) -> Host:
    host = Host(disk=disk, cleanup_policy="compact", **given)
    log = host.open()
    log.roll(NOW)
    log.flush(NOW)
    host.directory.write_recovery_points()
    return host


@pytest.mark.parametrize("segment_bytes", [1500, 3000, 1 << 20])
def test_compaction_writes_batches_of_magic_2(segment_bytes: int) -> None:
    host = open_compacted(segment_bytes=segment_bytes)
    compact_host(host)
    rows = ONCE[1]
    assert rows_of(host.log) == newest(rows, len(rows))
    assert host.log.log_end_offset == len(rows)
    for data in host.stored().values():
        assert {header.magic for header in read_headers(data)} == {2}
        assert sum(header.size for header in read_headers(data)) == len(data)
    for row in newest(rows, len(rows)):
        assert rows_of(host.log, row.offset, 1)[0] == row
    host.directory.close(NOW)
    assert [f for f in inspect_partition(host.disk, PLACE) if f.damage] == []
    assert rows_of(host.open()) == newest(rows, len(rows))


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
def test_a_segment_with_nothing_to_remove_is_rewritten_with_the_same_records(
    magic: int, codec: str
) -> None:
    rows = [Row(n, NOW + n if magic else -1, b"%d" % n, b"v" * n) for n in range(20)]
    data = b"".join(old_entries(rows[n : n + 5], magic, codec) for n in range(0, 20, 5))
    host = open_compacted(segments={0: data})
    compact_host(host)
    assert rows_of(host.log) == rows
    batches = read_headers(host.stored()[0])
    assert [header.codec.name.lower() for header in batches] == [codec] * len(batches)
    assert len(batches) == (2 if codec == "none" else 4), "messages without a codec go together"


def test_append_time_of_old_messages_stays() -> None:
    rows = [Row(n, NOW + n // 2, b"%d" % n, b"v") for n in range(6)]
    data = bytearray()
    for row in rows:
        entry = bytearray(old_entries([row], 1, "none"))
        entry[17] |= 8
        entry[12:16] = crc32(entry[16:]).to_bytes(4, "big")
        data += entry
    host = open_compacted(segments={0: bytes(data)})
    compact_host(host)
    assert rows_of(host.log) == rows
    assert all(header.is_append_time for header in read_headers(host.stored()[0]))


def test_tombstones_of_old_messages_go_after_their_horizon() -> None:
    rows = [Row(0, -1, b"a", b"1"), Row(1, -1, b"b", b"2"), Row(2, -1, b"a", None)]
    host = open_compacted(segments={0: old_entries(rows, 0, "none")}, delete_retention_ms=1000)
    compact_host(host)
    assert [row[2:] for row in rows_of(host.log)] == [(b"b", b"2"), (b"a", None)]
    log = host.log
    for key in (b"c", b"d"):
        log.append_as_leader(build_batch([(NOW, key, b"x" * 300)]), 0, NOW)
        log.set_high_watermark(log.log_end_offset)
        log.roll(NOW)
    log.flush(NOW)
    host.directory.write_recovery_points()
    compact_host(host, NOW + 1001)
    assert [row.key for row in rows_of(host.log)] == [b"b", b"c", b"d"]


# -- crashes at every operation -----------------------------------------------------------------


class PowerCut(Exception):
    """Ends a life at one of its file operations."""


def live(disk: SimulatedDisk, act: Any, operations: int) -> bool:
    """Do something up to so many file operations; return whether it came to its end."""
    left = operations

    def before(operation: str, path: str) -> None:
        nonlocal left
        if left == 0:
            raise PowerCut
        left -= 1

    disk.before = before
    try:
        act()
        return True
    except PowerCut:
        return False
    finally:
        disk.before = lambda operation, path: None


@pytest.mark.parametrize("lost", [True, False], ids=["power", "sigkill"])
def test_a_crash_at_any_operation_of_the_recovery_changes_nothing(lost: bool) -> None:
    operations = 0
    while True:
        host = Host(disk=SimulatedDisk(Random(operations), lambda: NOW))
        done = live(host.disk, host.open, operations)
        host.disk.crash() if lost else host.disk.kill()
        assert host.stored() == ONCE[0]
        log = host.open()
        assert rows_of(log) == ONCE[1]
        host.directory.close(NOW)
        assert host.stored() == ONCE[0]
        if done:
            break
        operations += 1
    assert operations > 100


@pytest.mark.parametrize("torn", [3, 30])
def test_a_crash_at_any_operation_of_cutting_a_torn_tail_cuts_no_more(torn: int) -> None:
    data, rows = old_segment(0, 1, "gzip", 4)
    whole, _ = old_segment(0, 1, "gzip", 3)
    operations = 0
    while True:
        host = Host({0: data[:-torn]}, disk=SimulatedDisk(Random(operations), lambda: NOW))
        done = live(host.disk, host.open, operations)
        host.disk.crash()
        assert host.stored() in ({0: data[:-torn]}, {0: whole})
        assert rows_of(host.open()) == rows[:15]
        assert host.stored() == {0: whole}
        if done:
            break
        operations += 1
    assert operations > 10


@pytest.mark.parametrize("lost", [True, False], ids=["power", "sigkill"])
@pytest.mark.parametrize("part", range(6))
def test_a_crash_at_any_operation_of_the_first_compaction_loses_nothing(
    lost: bool, part: int
) -> None:
    rows = ONCE[1]
    expected = newest(rows, len(rows))
    operations, crashes = part, 0
    while True:
        host = open_compacted(SimulatedDisk(Random(operations), lambda: NOW), segment_bytes=4000)
        done = live(host.disk, lambda: compact_host(host), operations)  # noqa: B023
        host.disk.crash() if lost else host.disk.kill()
        log = host.open()
        assert log.log_end_offset == len(rows)
        found = rows_of(log)
        assert [row for row in found if row in expected] == expected
        assert [row for row in found if row not in rows] == []
        for base, data in host.stored().items():
            # A segment is as it was, or of magic 2: nothing in between.
            assert data == ONCE[0].get(base) or {h.magic for h in read_headers(data)} == {2}
        names = host.disk.list(PLACE)
        assert not [n for n in names if n.endswith((".cleaned", ".swap", ".deleted", ".tmp"))]
        compact_host(host)  # unless the first pass was at its end, and that is known
        assert rows_of(host.log) == expected
        if done:
            break
        operations += 6
        crashes += 1
    assert crashes > 20
