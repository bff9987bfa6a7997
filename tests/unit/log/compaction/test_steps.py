"""Compaction of one log: what stays, what goes and when; a model over random histories; crashes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from tests import bombs
from tests.unit.log.reading import read_all

from barnabas.config.topic import TopicOptions
from barnabas.kernels import assign_offsets
from barnabas.log.compaction import rewriting
from barnabas.log.compaction.scheduler import examine
from barnabas.log.compaction.steps import (
    Aborted,
    Compacted,
    Means,
    compact,
    group_segments,
    run,
)
from barnabas.log.directory import LogDirectory
from barnabas.log.file_pool import FilePool
from barnabas.model.errors import ConfigError, CorruptRecordError, StorageError
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import BatchHeader, iterate, read_batch, read_headers
from barnabas.records.builder import build_batch
from barnabas.records.compression import Codec, TooLargeError
from barnabas.records.control import ControlType, build_control_batch
from barnabas.simulation.disk import SimulatedDisk

NOW = 1_700_000_000_000
T0 = TopicPartition("t", 0)
MEANS = Means(24 * 1000, 0.9, 512)
HISTORIES = int(os.environ.get("BARNABAS_COMPACTION_HISTORIES", "200"))


def make_options(**given: Any) -> TopicOptions:
    settings = {"cleanup_policy": "compact", "segment_bytes": 900, "index_interval_bytes": 100}
    settings |= given
    return TopicOptions.parse({k.replace("_", "."): str(v) for k, v in settings.items()})


class Host:
    """A directory with one log, whose clock and disk are in the test's hands."""

    def __init__(self, disk: SimulatedDisk, options: TopicOptions, now_ms: int = NOW) -> None:
        self.disk, self.options, self.now_ms = disk, options, now_ms
        self.unlink: list[str] = []
        self.open()

    def open(self) -> None:
        self.directory = LogDirectory(FilePool(self.disk, limit=4, indexes=3), "/data")
        self.directory.load(lambda topic: self.options, self.now_ms)
        self.log = self.directory.open_log(T0, self.options, self.now_ms, topic_id=bytes(16))
        self.log.set_high_watermark(self.log.log_end_offset)

    def put(self, *rows: Any, **settings: Any) -> int:
        data = build_batch([(self.now_ms, *row) for row in rows], **settings)
        offset = self.log.append_as_leader(data, 0, self.now_ms).first_offset
        self.log.set_high_watermark(self.log.log_end_offset)
        return offset

    def mark(self, ending: ControlType, producer_id: int, epoch: int = 0) -> None:
        data = build_control_batch(
            ending,
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=0,
            now_ms=self.now_ms,
        )
        self.log.append_as_leader(data, 0, self.now_ms, origin="coordinator")
        self.log.set_high_watermark(self.log.log_end_offset)

    def checkpoint(self) -> None:
        self.log.flush(self.now_ms)
        self.directory.write_recovery_points()

    def roll(self) -> None:
        self.log.roll(self.now_ms)
        self.checkpoint()

    def compact(self, means: Means = MEANS) -> Compacted | None:
        found = examine(self.log, self.now_ms)
        if found is None:
            return None
        done = run(
            compact(
                self.log,
                found.first_dirty,
                found.end,
                means,
                self.now_ms,
                unlink_later=self.unlink.extend,
            )
        )
        self.log.cleaned_offset = done.end_offset
        self.directory.write_cleaned_offsets()
        return done

    def retain(self) -> None:
        log = self.log
        offset = log.expired_before(self.now_ms)
        if offset > log.segments[0].base_offset:
            log.begin_removal(offset, self.now_ms)
            self.checkpoint()
            self.directory.write_log_starts()
            self.unlink += log.remove_before(offset)
            self.disk.flush_dir(log.directory)
            log.finish_removal()

    def purge(self) -> None:
        for path in self.unlink:
            self.disk.unlink(path)
        self.unlink.clear()

    def batches(self, start: int | None = None, max_bytes: int = 300) -> list[BatchHeader]:
        return [header for header, _ in self.raw(start, max_bytes)]

    def raw(
        self, start: int | None = None, max_bytes: int = 300
    ) -> Iterator[tuple[BatchHeader, bytes]]:
        log = self.log
        position = log.log_start_offset if start is None else start
        while position < log.log_end_offset:
            piece = log.read(position, max_bytes)
            data = piece.read()
            piece.release()
            headers = read_headers(data)
            assert headers, position
            at = 0
            for header in headers:
                yield header, data[at : at + header.size]
                at += header.size
            position = headers[-1].next_offset

    def records(self, start: int | None = None) -> list[tuple[int, bytes | None, bytes | None]]:
        """What a read_committed consumer gets."""
        log = self.log
        first = log.log_start_offset if start is None else start
        aborted = sorted(
            log.aborted_transactions(first, log.log_end_offset), key=lambda each: each.first_offset
        )
        ongoing: set[int] = set()
        found = []
        for header, data in self.raw(start):
            if header.base_offset >= log.last_stable_offset:
                break
            while aborted and aborted[0].first_offset <= header.last_offset:
                ongoing.add(aborted.pop(0).producer_id)
            if header.is_control:
                for record in read_batch(data, header):
                    if record.key == b"\0\0\0\0":
                        ongoing.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in ongoing):
                found += [(r.offset, r.key, r.value) for r in iterate(data) if r.offset >= first]
        return found

    def names(self) -> list[str]:
        return self.disk.list("/data/t-0")


@pytest.fixture
def host() -> Host:
    return Host(SimulatedDisk(Random(1), lambda: NOW), make_options())


def values(host: Host) -> list[tuple[int, bytes | None, bytes | None]]:
    return host.records()


def test_the_newest_record_of_each_key_stays_at_its_offset(host: Host) -> None:
    for number in range(40):
        host.put((b"k%d" % (number % 4), b"v%d" % number))
    host.roll()
    host.put((b"k0", b"new"))
    done = host.compact()
    assert done is not None
    assert done.end_offset == 40
    assert done.bytes_after < done.bytes_before
    assert values(host) == [
        (36, b"k0", b"v36"),
        (37, b"k1", b"v37"),
        (38, b"k2", b"v38"),
        (39, b"k3", b"v39"),
        (40, b"k0", b"new"),
    ]
    assert [segment.base_offset for segment in host.log.segments] == [0, 40]


def test_the_active_segment_is_never_touched(host: Host) -> None:
    host.put((b"a", b"1"))
    host.put((b"a", b"2"))
    host.checkpoint()
    assert host.compact() is None


def test_only_what_lies_below_the_checkpointed_recovery_point_is_compacted(host: Host) -> None:
    host.put((b"a", b"1"), (b"a", b"2"))
    host.log.roll(NOW)
    assert host.compact() is None
    host.log.flush(NOW)
    assert host.compact() is None
    host.directory.write_recovery_points()
    assert host.compact() is not None


def test_untouched_batches_are_copied_byte_for_byte(host: Host) -> None:
    host.put((b"a", b"1", (("h", b"x"),)), (b"b", b"2"), codec="lz4")
    host.put((b"c", b"3"))
    host.put((b"a", b"old"), (b"d", b"4"))
    host.put((b"a", b"5"))
    before = {header.base_offset: data for header, data in host.raw()}
    host.roll()
    host.compact()
    after = {header.base_offset: data for header, data in host.raw()}
    assert after[2] == before[2]
    assert after[5] == before[5]
    assert values(host) == [(1, b"b", b"2"), (2, b"c", b"3"), (4, b"d", b"4"), (5, b"a", b"5")]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_rebuilt_batches_keep_codec_offsets_and_times(host: Host, codec: str) -> None:
    host.put((b"a", b"1"), (b"b", b"2", (("h", None),)), (b"a", b"3"), codec=codec)
    host.put((b"a", b"4"), codec=codec)
    host.roll()
    host.compact()
    header = host.batches()[0]
    assert (header.base_offset, header.last_offset, header.count) == (0, 2, 1)
    assert header.codec.name.lower() == codec
    assert header.max_timestamp == NOW
    assert values(host) == [(1, b"b", b"2"), (3, b"a", b"4")]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_tombstone_goes_when_its_horizon_has_passed(codec: str) -> None:
    options = make_options(delete_retention_ms=1000, min_cleanable_dirty_ratio=0)
    host = Host(SimulatedDisk(Random(1), lambda: NOW), options)
    host.put((b"a", b"1"), (b"b", b"1"), codec=codec)
    host.put((b"a", None), (b"c", b"1"), codec=codec)
    host.roll()
    host.compact()
    assert values(host) == [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    assert [h.delete_horizon_ms for h in host.batches()] == [None, NOW + 1000]
    assert [r.timestamp for _, data in host.raw() for r in iterate(data)] == [NOW] * 3
    for step, left in ((999, 3), (1000, 2)):
        host.now_ms = NOW + step
        host.put((b"x%d" % step, b""))
        host.roll()
        host.compact()
        assert len([each for each in values(host) if each[0] <= 3]) == left
    assert host.log.find_timestamp(NOW) is not None


def test_aborted_data_goes_at_once_and_its_marker_later() -> None:
    options = make_options(delete_retention_ms=1000)
    host = Host(SimulatedDisk(Random(1), lambda: NOW), options)
    host.put((b"a", b"1"))
    host.put((b"a", b"no"), transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)
    host.mark(ControlType.ABORT, 7)
    host.put((b"b", b"yes"), transactional=True, producer_id=8, producer_epoch=0, base_sequence=0)
    host.mark(ControlType.COMMIT, 8)
    host.put((b"b", b"2"))
    # Neither producer is active any more.
    host.log.producers.expire(NOW + 10**9, 1)
    host.roll()
    host.compact()
    assert values(host) == [(0, b"a", b"1"), (5, b"b", b"2")]
    assert [h.base_offset for h in host.batches()] == [0, 2, 4, 5]
    assert host.log.aborted_transactions(0, 9) == [(7, 1, 2, 3)]
    for step, left in ((10, [2, 4]), (1009, [2, 4]), (1010, [])):
        host.now_ms = NOW + step
        host.put((b"x%d" % step, b""))
        host.roll()
        host.compact()
        assert [h.base_offset for h in host.batches() if h.is_control] == left
        assert host.log.aborted_transactions(0, 99) == []
    assert host.log.last_stable_offset == host.log.log_end_offset


def test_open_transactions_hold_compaction_back(host: Host) -> None:
    host.put((b"a", b"1"))
    host.put((b"a", b"2"))
    host.roll()
    host.put((b"a", b"3"), transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)
    host.roll()
    host.put((b"a", b"4"))
    host.roll()
    done = host.compact()
    assert done is not None
    assert done.end_offset == 2
    assert [h.base_offset for h in host.batches()] == [1, 2, 3]


def test_the_last_batch_of_an_active_producer_stays_and_dedup_goes_on(host: Host) -> None:
    host.put((b"a", b"1"), (b"a", b"2"), producer_id=7, producer_epoch=3, base_sequence=0)
    host.put((b"a", b"3"))
    host.roll()
    host.put((b"z", b""))
    host.compact()
    empty = host.batches()[0]
    assert (empty.count, empty.last_sequence, empty.producer_epoch) == (0, 1, 3)
    for _ in range(2):
        host.log.producers.restore([])
        for name in host.names():
            if name.endswith(".snapshot"):
                host.disk.unlink(f"/data/t-0/{name}")
        host.directory.close(NOW)
        for name in host.names():
            if name.endswith(".snapshot"):
                host.disk.unlink(f"/data/t-0/{name}")
        host.open()
        again = build_batch(
            [(NOW, b"a", b"1"), (NOW, b"a", b"2")], producer_id=7, producer_epoch=3, base_sequence=0
        )
        assert host.log.append_as_leader(again, 0, NOW).duplicate


def test_every_segment_keeps_its_end() -> None:
    """Else a log whose last records went would begin anew at offsets that were given before."""
    host = Host(SimulatedDisk(Random(1), lambda: NOW), make_options(cleanup_policy="delete"))
    host.put((b"a", b"1"))
    host.put((None, b"2"), (None, b"3"))
    host.roll()
    host.log.configure(make_options())
    host.compact()
    host.disk.crash()
    host.open()
    assert host.log.log_end_offset == 3
    assert [(h.base_offset, h.last_offset, h.count) for h in host.batches()] == [
        (0, 0, 1),
        (1, 2, 0),
    ]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_tombstones_of_a_batch_that_is_mapped_in_part_have_no_horizon_yet(codec: str) -> None:
    host = Host(SimulatedDisk(Random(1), lambda: NOW), make_options())
    host.put((b"a", None), (b"b", b"1"), (b"c", None), (b"d", b"1"), codec=codec)
    host.roll()
    means = Means(24 * 4, 0.9, 64)
    for end, horizon in ((3, None), (4, NOW + host.options.delete_retention_ms)):
        done = host.compact(means)
        assert done is not None
        assert done.end_offset == end
        assert host.batches()[0].delete_horizon_ms == horizon


def test_a_transaction_beyond_the_map_stays_aborted(host: Host) -> None:
    for key in (b"a", b"a", b"b", b"c", b"d"):
        host.put((key, b"1"))
    host.put((b"e", b"no"), transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)
    host.mark(ControlType.ABORT, 7)
    host.roll()
    done = host.compact(Means(24 * 4, 0.9, 64))
    assert done is not None
    assert done.end_offset == 4
    assert [key for _, key, _ in values(host)] == [b"a", b"b", b"c", b"d"]


def test_small_neighbours_become_one_segment_within_the_limits(host: Host) -> None:
    for number in range(12):
        host.put((b"k%d" % number, b"v" * 300))
        host.roll()
    segments = list(host.log.segments[:-1])
    groups = group_segments(segments, 12, make_options(segment_bytes=1200))
    assert [len(group) for group in groups] == [3, 3, 3, 3]
    groups = group_segments(segments, 12, make_options(segment_bytes=10**6, segment_index_bytes=96))
    assert all(len(group) == 1 for group in groups)
    host.compact()
    assert len(host.log.segments) == 7
    assert len(values(host)) == 12


def test_segments_that_have_become_small_are_merged_in_the_same_pass(host: Host) -> None:
    """By their new sizes, and as often as it takes: one batch of 61 bytes is left of each."""
    for number in range(250):
        host.put((b"k%d" % (number % 2), b"v" * 300))
        host.put((b"k%d" % (number % 2), b"v" * 300))
        host.roll()
    assert len(host.log.segments) == 251
    done = host.compact()
    assert [segment.base_offset for segment in host.log.segments[:-1]] == [0]
    assert [(h.base_offset, h.count) for h in host.batches()] == [(497, 1), (499, 1)]
    assert done is not None
    assert done.bytes_after == host.log.segments[0].size_bytes
    assert host.log.segments[0].size_bytes <= host.options.segment_bytes


def test_what_is_merged_keeps_markers_producers_and_aborted_transactions(host: Host) -> None:
    """A marker is needed by a batch of another segment, which the merge does not look at."""
    identity = {"transactional": True, "producer_id": 7, "producer_epoch": 0}
    host.put((b"big", b"v" * 730))
    host.put((b"a", b"no"), base_sequence=0, **identity)
    host.roll()
    host.put((b"c", b"old" * 260))
    host.roll()
    host.mark(ControlType.ABORT, 7)
    host.put((b"c", b"new"))
    host.roll()
    aborted = host.log.aborted_transactions(0, host.log.log_end_offset)
    assert [each.producer_id for each in aborted] == [7]
    host.compact()
    assert [segment.base_offset for segment in host.log.segments] == [0, 2, 5]
    assert [(h.base_offset, h.count, h.is_control) for h in host.batches()] == [
        (0, 1, False),
        (1, 0, False),  # its producer's last one
        (3, 1, True),
        (4, 1, False),
    ]
    assert host.log.aborted_transactions(0, host.log.log_end_offset) == aborted
    assert [key for _, key, _ in values(host)] == [b"big", b"c"]
    host.checkpoint()
    host.disk.crash()
    host.open()
    assert not host.log.producers.has_open_transaction(7)
    assert host.log.producers.get(7).last_sequence == 0


def test_a_great_number_of_segments_is_not_open_at_once(host: Host) -> None:
    for number in range(250):
        host.put((b"k%d" % number, b"v"))
        host.roll()
    groups = group_segments(host.log.segments[:-1], 250, make_options(segment_bytes=10**6))
    assert [len(group) for group in groups] == [100, 100, 50]


def test_a_full_map_ends_early_and_the_next_round_goes_on(host: Host) -> None:
    means = Means(24 * 5, 0.9, 64)
    for number in range(30):
        host.put((b"k%d" % (number % 10), b"v%d" % number), (b"s", b"%d" % number))
    host.roll()
    ends = []
    while (done := host.compact(means)) is not None:
        ends.append(done.end_offset)
    assert ends == sorted(set(ends))
    assert ends[-1] == 60
    assert [v[1:] for v in values(host) if v[1] != b"s"] == [
        (b"k%d" % (n % 10), b"v%d" % n) for n in range(20, 30)
    ]


def test_a_map_too_small_for_one_key_is_an_error(host: Host) -> None:
    host.put((b"a", b"1"))
    host.roll()
    with pytest.raises(ConfigError, match=r"log\.cleaner\.dedupe\.buffer\.size"):
        host.compact(Means(24, 0.9, 64))


def test_a_batch_that_cannot_be_read_stops_the_compaction(host: Host) -> None:
    host.put((b"a", b"1"))
    host.put((b"a", b"2"))
    host.roll()
    file = host.disk.open("/data/t-0/00000000000000000000.log")
    file.pwrite(b"X", 65)
    before = host.names()
    with pytest.raises(CorruptRecordError):
        host.compact()
    assert host.names() == before


def test_a_count_that_rotted_asks_for_no_memory(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no room for what two thousand million records could grow by."""

    def modest(size: int) -> bytearray:
        assert size < 1_000_000
        return bytearray(size)

    host.put((b"a", b"1"))
    host.roll()
    host.compact()
    host.put((b"b", b"1"))
    host.roll()
    host.disk.open("/data/t-0/00000000000000000000.log").pwrite(b"\x7f\xff\xff\xff", 57)
    monkeypatch.setattr(rewriting, "bytearray", modest, raising=False)
    with pytest.raises(CorruptRecordError):
        host.compact()


def test_readers_keep_the_old_file_and_no_name_stays(host: Host) -> None:
    for number in range(30):
        host.put((b"k", b"v%d" % number))
    host.roll()
    piece = host.log.read(0, 10**6)
    expected = piece.read()
    host.compact()
    host.purge()
    assert piece.read() == expected
    piece.release()
    assert not [n for n in host.names() if n.endswith((".deleted", ".swap", ".cleaned"))]
    assert [n for n in host.names() if n.endswith(".log")] == [
        f"{segment.base_offset:020d}.log" for segment in host.log.segments
    ]


def test_an_abort_leaves_the_log_as_it_was(host: Host) -> None:
    for number in range(30):
        host.put((b"k", b"v%d" % number))
    host.roll()
    before, names = values(host), host.names()
    for limit in range(4):
        answers = iter([False] * limit)
        steps = compact(
            host.log,
            0,
            30,
            MEANS,
            NOW,
            unlink_later=host.unlink.extend,
            is_aborted=lambda answers=answers: next(answers, True),  # type: ignore[misc]
        )
        with pytest.raises(Aborted):
            run(steps)
        assert (values(host), host.names(), host.unlink) == (before, names, [])


def test_segments_that_went_meanwhile_abort_it(host: Host) -> None:
    for number in range(30):
        host.put((b"k", b"v%d" % number))
    host.roll()
    steps = compact(host.log, 0, 30, MEANS, NOW, unlink_later=host.unlink.extend)
    next(steps)()
    host.log.truncate_to(5, NOW)
    with pytest.raises(Aborted):
        run(steps)
    assert host.log.log_end_offset == 5
    assert not [n for n in host.names() if n.endswith((".swap", ".cleaned"))]


def test_the_new_file_is_as_old_as_the_last_one_it_was_made_of() -> None:
    now = NOW
    host = Host(SimulatedDisk(Random(1), lambda: now), make_options())
    host.put((b"a", b"1"), (b"a", b"2"))
    host.roll()
    now += 5000
    host.compact()
    assert host.disk.mtime_ms(host.log.segments[0].path(".log")) == NOW


# -- random histories -----------------------------------------------------------------------------


class History(Host):
    """Random acts on one log, and a dictionary that knows the newest value of every key."""

    def __init__(self, random: Random, options: TopicOptions) -> None:
        self.random = random
        self.newest: dict[bytes, tuple[int, bytes | None]] = {}
        self.written: dict[int, tuple[bytes | None, bytes | None]] = {}
        self.pending: dict[int, list[tuple[int, bytes | None, bytes | None]]] = {}
        self.sequences: dict[int, int] = {}
        self.sent = 0
        super().__init__(SimulatedDisk(random, lambda: self.now_ms), options)

    def note(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        self.written[offset] = (key, value)
        if key is not None and (key not in self.newest or self.newest[key][0] < offset):
            self.newest[key] = (offset, value)

    def produce(self) -> None:
        random = self.random
        rows: list[Any] = []
        for _ in range(random.choice((1, 1, 2, 5))):
            key: bytes | None = b"k%d" % random.randrange(8)
            if not self.options.compact and random.random() < 0.2:
                key = None
            self.sent += 1
            value = None if random.random() < 0.25 else b"%d" % self.sent * random.choice((1, 9))
            rows.append((key, value))
        producer = random.choice((-1, -1, 1, 2, 3, 4))
        settings: dict[str, Any] = {"codec": random.choice(("none", "none", "none", "gzip", "lz4"))}
        transactional = producer >= 3
        if producer >= 0:
            settings |= {
                "producer_id": producer,
                "producer_epoch": 0,
                "base_sequence": self.sequences.get(producer, 0),
                "transactional": transactional,
            }
            self.sequences[producer] = self.sequences.get(producer, 0) + len(rows)
        first = self.put(*rows, **settings)
        for index, (key, value) in enumerate(rows):
            if transactional:
                self.pending.setdefault(producer, []).append((first + index, key, value))
            else:
                self.note(first + index, key, value)

    def end(self) -> None:
        producer = self.random.choice((3, 4))
        ending = self.random.choice((ControlType.ABORT, ControlType.COMMIT))
        self.mark(ending, producer)
        for entry in self.pending.pop(producer, []):
            if ending is ControlType.COMMIT:
                self.note(*entry)

    def restart(self) -> None:
        end = self.log.log_end_offset
        if self.random.random() < 0.5:
            self.directory.close(self.now_ms)
        else:
            self.checkpoint()
            if self.random.random() < 0.5:
                self.directory.write_log_starts()
        self.disk.crash()
        self.unlink.clear()
        self.open()
        assert self.log.log_end_offset == end, "an offset would be given again"

    def check(self) -> None:
        log = self.log
        found = self.records()
        offsets = [offset for offset, _, _ in found]
        assert offsets == sorted(set(offsets))
        stable = log.last_stable_offset
        seen: dict[bytes, tuple[int, bytes | None]] = {}
        for offset, key, value in found:
            assert self.written[offset] == (key, value)
            if key is not None:
                seen[key] = (offset, value)
        any_size = self.random.choice((1, 200, 10_000))
        given = read_all(log, log.log_start_offset, lambda: any_size, committed=True)
        assert [(record.offset, record.key, record.value) for record in given] == found
        settled = {entry[0] for entries in self.pending.values() for entry in entries}
        assert not settled & set(offsets)
        for key, (offset, value) in self.newest.items():
            if log.log_start_offset <= offset < stable:
                if value is not None or key in seen:
                    assert seen[key] == (offset, value), key
            elif offset >= stable and key in seen:
                assert seen[key][0] < stable
        if not log.options.compact:
            first = log.log_start_offset
            assert set(offsets) == {o for o in self.written if first <= o < stable}
        for producer, sequence in self.sequences.items():
            entry = log.producers.get(producer)
            if entry is None or not entry.batches:
                # Only retention can take the last trace of a producer away.
                assert log.log_start_offset > 0
            else:
                assert entry.last_sequence == sequence - 1
        for producer in (3, 4):
            assert log.producers.has_open_transaction(producer) == (producer in self.pending)

    def act(self) -> None:
        act = self.random.random()
        if act < 0.62:
            self.produce()
        elif act < 0.72:
            self.end()
        elif act < 0.80:
            self.roll()
        elif act < 0.87:
            self.compact(Means(24 * self.random.choice((4, 12, 1000)), 0.9, 200))
        elif act < 0.90:
            self.retain()
        elif act < 0.94:
            self.now_ms += self.random.choice((1, 200, 2000))
        elif act < 0.96:
            self.purge()
        else:
            self.restart()


POLICIES = ("compact", "compact", "compact,delete", "delete")


@pytest.mark.parametrize("start", range(0, HISTORIES, 10))
def test_histories_keep_what_a_dictionary_remembers(start: int) -> None:
    for seed in range(start, min(start + 10, HISTORIES)):
        random = Random(seed)
        options = make_options(
            cleanup_policy=POLICIES[seed % 4],
            delete_retention_ms=random.choice((0, 500)),
            min_compaction_lag_ms=random.choice((0, 0, 300)),
            retention_ms=3000,
            retention_bytes=random.choice((-1, 1500)),
        )
        history = History(random, options)
        for step in range(80):
            history.act()
            if step % 8 == 7:
                history.check()
        history.restart()
        history.check()


@pytest.mark.parametrize("seed", range(12))
def test_a_reader_during_compaction_sees_no_hole_and_nothing_twice(seed: int) -> None:
    """One read between any two steps: every value that stays newest is met, in order."""
    random = Random(seed)
    host = Host(SimulatedDisk(random, lambda: NOW), make_options(segment_bytes=400))
    newest: dict[bytes, int] = {}
    for number in range(80):
        key = b"k%d" % random.randrange(10)
        newest[key] = host.put((key, b"v%d" % number))
    host.roll()
    steps = compact(host.log, 0, 80, MEANS, NOW, unlink_later=host.unlink.extend)
    position, seen = 0, []
    for work in steps:
        if position < host.log.log_end_offset:
            piece = host.log.read(position, 150)
            data = piece.read()
            piece.release()
            seen += [r.offset for r in iterate(data) if r.offset >= position]
            position = read_headers(data)[-1].next_offset
        work()
        assert {key: o for o, key, _ in host.records()} == newest
    seen += [offset for offset, _, _ in host.records(position)] if position < 80 else []
    assert seen == sorted(set(seen))
    assert set(newest.values()) <= set(seen)


# -- crashes --------------------------------------------------------------------------------------


class CrashingDisk(SimulatedDisk):
    """A disk on which the machine goes down at the n-th operation."""

    countdown: int | None = None

    def check(self, operation: str, path: str) -> None:
        if self.countdown is not None:
            self.countdown -= 1
            if self.countdown < 0:
                raise PowerCut
        super().check(operation, path)


class PowerCut(BaseException):
    """The end of the process, wherever it is."""


def prepare(
    disk: CrashingDisk, segment_bytes: int = 1200, kept: int = 0
) -> tuple[Host, dict[bytes, tuple[int, bytes | None]]]:
    """Make a log of 30 records over a few keys; the first `kept` have each its own."""
    options = make_options(
        segment_bytes=segment_bytes,
        cleanup_policy="compact,delete",
        retention_ms=10_000,
        segment_ms=10**9,
    )
    host = Host(disk, options)
    newest: dict[bytes, tuple[int, bytes | None]] = {}
    for number in range(30):
        if number == 12:
            host.now_ms += 5_000
        key, value = b"k%d" % (number % 5), b"v%d" % number
        if number < kept:
            key = b"o%d" % number
        newest[key] = (host.put((key, value)), value)
        if number % 4 == 3:
            host.log.roll(host.now_ms)
        if number == 20:
            host.put(
                (b"k1", b"no"), transactional=True, producer_id=7, producer_epoch=0, base_sequence=0
            )
            host.mark(ControlType.ABORT, 7)
    host.roll()
    return host, newest


def check_after_crash(host: Host, newest: dict[bytes, tuple[int, bytes | None]], end: int) -> None:
    log = host.log
    assert log.log_end_offset == end
    found = {key: (offset, value) for offset, key, value in host.records()}
    expected = {k: v for k, v in newest.items() if v[0] >= log.log_start_offset}
    assert found == expected
    assert log.producers.get(7).last_sequence == 0
    assert not log.producers.has_open_transaction(7)
    for segment in log.segments[:-1]:
        assert segment.newest()[0] == max(header.max_timestamp for _, header in segment.headers())
    bases = {segment.base_offset for segment in log.segments}
    for name in host.names():
        assert not name.endswith((".deleted", ".swap", ".cleaned", ".tmp")), name
        if name[:20].isdigit() and not name.endswith(".snapshot"):
            assert int(name[:20]) in bases, name


@pytest.mark.parametrize("cut", range(280))
def test_a_crash_at_any_operation_of_a_compaction_loses_nothing(cut: int) -> None:
    for seed in range(5):
        disk = CrashingDisk(Random(1000 * cut + seed), lambda: NOW)
        host, newest = prepare(disk)
        end = host.log.log_end_offset
        disk.countdown = cut
        try:
            host.compact()
            finished = True
        except PowerCut:
            finished = False
        disk.countdown = None
        if seed == 2:
            disk.kill()
        else:
            disk.crash()
        host.open()
        check_after_crash(host, newest, end)
        host.compact()
        check_after_crash_again(host, newest, end)
        if finished and seed > 2:
            break


@pytest.mark.parametrize("seed", range(40))
def test_old_names_are_surely_gone_before_the_new_segment_takes_its_own(seed: int) -> None:
    """Else a crash could leave the new segment and, inside its range, an old one."""
    disk = CrashingDisk(Random(seed), lambda: NOW)
    host, newest = prepare(disk)
    end = host.log.log_end_offset
    found = examine(host.log, host.now_ms)
    assert found is not None
    for work in compact(
        host.log, 0, found.end, MEANS, host.now_ms, unlink_later=host.unlink.extend
    ):
        names = host.names()
        if any(n.endswith(".deleted") for n in names) and f"{0:020d}.log" in names:
            break
        work()
    else:
        pytest.fail("the segments were never replaced")
    disk.crash()
    host.open()
    check_after_crash(host, newest, end)


@pytest.mark.parametrize("cut", range(120))
def test_a_crash_between_recovery_and_the_first_compaction_loses_nothing(cut: int) -> None:
    """The segments that recovery has walked are flushed and checkpointed, and then compacted."""
    for seed in range(2):
        disk = CrashingDisk(Random(1000 * cut + seed), lambda: NOW)
        host = Host(disk, make_options(segment_bytes=1200, cleanup_policy="compact"))
        rows = [(b"k%d" % (number % 5), b"v%d" % number) for number in range(30)]
        for number, row in enumerate(rows):
            assert host.put(row) == number
            if number % 4 == 3:
                host.log.roll(host.now_ms)
        disk.kill()
        host.open()
        assert host.log.recovery_point == 0
        assert examine(host.log, host.now_ms) is None
        disk.countdown = cut
        try:
            host.log.flush(host.now_ms, host.log.segments[-1].base_offset)
            host.directory.write_recovery_points()
            assert host.compact() is not None
        except PowerCut:
            pass
        disk.countdown = None
        safe = host.log.checkpointed_recovery_point
        disk.crash()
        host.open()
        end = host.log.log_end_offset
        assert end >= safe
        host.checkpoint()
        host.compact()
        expected = {key: (offset, value) for offset, (key, value) in enumerate(rows[:end])}
        assert {key: (offset, value) for offset, key, value in host.records()} == expected


def check_after_crash_again(
    host: Host, newest: dict[bytes, tuple[int, bytes | None]], end: int
) -> None:
    host.purge()
    check_after_crash(host, newest, end)


@pytest.mark.parametrize("cut", range(70))
def test_a_crash_at_any_operation_of_retention_leaves_a_log_without_holes(cut: int) -> None:
    for seed in range(3):
        disk = CrashingDisk(Random(1000 * cut + seed), lambda: NOW)
        host, newest = prepare(disk, segment_bytes=500, kept=12)
        if seed % 2:
            host.compact()
        end = host.log.log_end_offset
        start = host.log.log_start_offset
        host.now_ms += 8_000
        expired = host.log.expired_before(host.now_ms)
        assert start < expired < end
        disk.countdown = cut
        with contextlib.suppress(PowerCut):
            host.retain()
        disk.countdown = None
        disk.crash()
        host.open()
        assert host.log.log_start_offset in (start, expired)
        offsets = [header.base_offset for header in host.batches()]
        assert offsets[0] >= host.log.log_start_offset or seed % 2 == 0
        check_after_crash(host, newest, end)


@pytest.mark.parametrize("number", range(0, 290, 3))
def test_a_failing_disk_fails_the_compaction_and_not_the_log(number: int) -> None:
    class Failing(CrashingDisk):
        def check(self, operation: str, path: str) -> None:
            try:
                super().check(operation, path)
            except PowerCut:
                if number % 2:
                    self.countdown = None
                raise StorageError(f"cannot {operation} {path}: injected") from None

    disk = Failing(Random(number), lambda: NOW)
    host, newest = prepare(disk)
    end = host.log.log_end_offset
    disk.countdown = number
    with contextlib.suppress(StorageError):
        host.compact()
    disk.countdown = None
    assert {key: (o, v) for o, key, v in host.records()} == newest
    host.put((b"k0", b"after"))
    assert host.log.log_end_offset == end + 1
    newest[b"k0"] = (end, b"after")
    host.checkpoint()
    disk.crash()
    host.open()
    check_after_crash(host, newest, end + 1)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_batch_that_unpacks_to_much_is_compacted_in_pieces(codec: str) -> None:
    """The same stays as of a small one: newest records, and tombstones with their horizon."""
    host = Host(
        SimulatedDisk(Random(1), lambda: NOW),
        make_options(segment_bytes=1 << 20, delete_retention_ms=1000),
    )
    rows: list[Any] = [(b"key-%d" % (n % 3000), bytes(1000)) for n in range(4000)]
    rows[3500] = (b"key-500", None)
    host.put(*rows, codec=codec)
    host.put((b"key-7", b"newer"), codec=codec)
    host.roll()
    host.put((b"later", b"active"))
    assert host.compact(Means(24 * 10_000, 0.9, 512)) is not None
    piece = host.log.read(0, 1 << 24)
    data = piece.read()
    piece.release()
    kept = {record.offset: record for record in iterate(data)}
    assert set(kept) == set(range(1000, 4001)) - {3007}
    assert kept[3500].value is None
    assert kept[4000].value == b"newer"
    assert kept[1000].value == bytes(1000)
    assert {record.timestamp for record in kept.values()} == {NOW}
    large = read_headers(data)[0]
    assert large.count == 2999
    assert large.max_timestamp == NOW
    assert large.delete_horizon_ms == NOW + 1000
    assert large.codec.name.lower() == codec


def test_a_record_that_is_not_to_be_unpacked_ends_a_compaction_without_a_change() -> None:
    """A key that cannot be seen must not bring back what was deleted."""
    host = Host(SimulatedDisk(Random(1), lambda: NOW), make_options(segment_bytes=1 << 20))
    host.put((b"k", b"older"))
    bomb = bytearray(bombs.batch(Codec.GZIP, bombs.one_record(40 << 20), timestamp=NOW))
    assign_offsets(bomb, 0, 1, 0)
    host.log.append_as_follower(bytes(bomb), host.now_ms)
    host.log.set_high_watermark(host.log.log_end_offset)
    host.put((b"k", None))
    host.roll()
    before = host.log.segments[0].size_bytes
    with pytest.raises(TooLargeError, match=r"barnabas\.unpacked\.record\.max\.bytes"):
        host.compact()
    assert host.log.segments[0].size_bytes == before
