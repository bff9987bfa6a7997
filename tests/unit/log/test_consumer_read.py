"""What a consumer is given: never an answer in vain while something for it follows."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.unit.log.reading import read_all

from barnabas.config.topic import TopicOptions
from barnabas.kernels import NO_TIMESTAMP, rebuild_batch
from barnabas.log import consumer_read
from barnabas.log.consumer_read import read_for_consumer
from barnabas.log.file_pool import FilePool
from barnabas.log.partition_log import PartitionLog
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.model.errors import CorruptFileError
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import BatchHeader, read_headers
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, build_control_batch
from barnabas.simulation.disk import SimulatedDisk

NOW = 1_700_000_000_000
MUCH = 1 << 20


class Copy:
    """A log filled as a follower fills it: also with what compaction has left at the leader."""

    def __init__(self, random: Random | None = None, **options: Any) -> None:
        self.disk = SimulatedDisk(random or Random(1), lambda: NOW)
        settings = {"segment_bytes": 10**6, "index_interval_bytes": 100} | options
        self.options = TopicOptions.parse(
            {name.replace("_", "."): str(value) for name, value in settings.items()}
        )
        self.open()

    def open(self) -> None:
        """Open the log, again after `close`."""
        self.pool = FilePool(self.disk, limit=4, indexes=3)
        partition = TopicPartition("t", 0)
        self.log = PartitionLog.open(
            self.pool, "/data/t-0", partition, self.options, NOW, topic_id=bytes(16)
        )
        self.log.set_high_watermark(self.log.log_end_offset)

    def put(self, count: int = 1, **settings: Any) -> int:
        """Append a batch of records; return its first offset."""
        rows = [(NOW, b"k", b"v%d" % index) for index in range(count)]
        return self.take(build_batch(rows, base_offset=self.log.log_end_offset, **settings), count)

    def put_cut(self, kept: int, count: int, **settings: Any) -> int:
        """Append a batch from which compaction took all but its first records."""
        base = self.log.log_end_offset
        whole = build_batch([(NOW, b"k", b"v")] * count, base_offset=base, **settings)
        part = build_batch([(NOW, b"k", b"v")] * kept, base_offset=base, **settings)
        fields = read_headers(part)[0]
        cut = rebuild_batch(
            whole, 0, part[61:], kept, fields.attributes, fields.base_timestamp, NOW
        )
        return self.take(cut, count)

    def put_void(self, count: int = 1, **settings: Any) -> int:
        """Append a batch of which compaction left the header."""
        base = self.log.log_end_offset
        whole = build_batch([(NOW, b"k", b"v")] * count, base_offset=base, **settings)
        attributes = read_headers(whole)[0].attributes
        return self.take(rebuild_batch(whole, 0, b"", 0, attributes, NO_TIMESTAMP, NOW), count)

    def mark(self, ending: ControlType, producer_id: int) -> int:
        """Append the end of a transaction."""
        marker = build_control_batch(
            ending, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, now_ms=NOW
        )
        data = bytearray(marker)
        data[:8] = self.log.log_end_offset.to_bytes(8, "big")
        return self.take(data, 1)

    def take(self, data: bytes | bytearray, count: int) -> int:
        base = self.log.log_end_offset
        assert self.log.append_as_follower(data, NOW) == 1
        assert self.log.log_end_offset == base + count
        self.log.set_high_watermark(self.log.log_end_offset)
        return base

    def roll(self) -> None:
        self.log.roll(NOW)

    def reopen(self) -> None:
        self.log.close(NOW)
        self.open()

    def answer(
        self, offset: int, max_bytes: int = MUCH, end: int | None = None, **how: Any
    ) -> tuple[list[BatchHeader], bytes, list[AbortedTransaction]]:
        """Return what a consumer gets: whole batches, their bytes, aborted transactions."""
        if end is None:
            end = self.log.last_stable_offset if how.get("committed") else self.log.high_watermark
        piece, aborted = read_for_consumer(self.log, offset, max_bytes, end, **how)
        data = piece.read()
        piece.release()
        return read_headers(data), data, list(aborted)


def transaction(producer_id: int, sequence: int = 0) -> dict[str, Any]:
    return {
        "transactional": True,
        "producer_id": producer_id,
        "producer_epoch": 0,
        "base_sequence": sequence,
    }


def offsets(headers: list[BatchHeader]) -> list[int]:
    return [header.base_offset for header in headers]


def test_a_segment_of_empty_batches_is_passed_over() -> None:
    copy = Copy()
    copy.put(3)
    copy.roll()
    for _ in range(4):
        copy.put_void(5)
        copy.roll()
    copy.put_void()
    wanted = copy.put(2)
    for _ in range(2):
        assert offsets(copy.answer(0)[0]) == [0]
        for offset in range(3, wanted + 2):
            assert offsets(copy.answer(offset)[0]) == [wanted]
        copy.reopen()


def test_replicas_still_get_every_batch() -> None:
    copy = Copy()
    copy.put_void(5)
    copy.roll()
    copy.put()
    piece = copy.log.read(0, MUCH)
    assert offsets(read_headers(piece.read())) == [0]
    piece.release()


def test_what_lies_beyond_the_bound_is_not_shown() -> None:
    copy = Copy()
    copy.put_void(2)
    copy.roll()
    last = copy.put_void(3)
    copy.roll()
    copy.put()
    assert offsets(copy.answer(0, end=5)[0]) == [last]
    assert offsets(copy.answer(0, end=2)[0]) == [0]
    assert offsets(copy.answer(0, end=6)[0]) == [5]
    assert copy.answer(5, end=5)[0] == []


def test_a_client_comes_past_markers_at_the_end_of_the_log() -> None:
    copy = Copy()
    copy.put(1, **transaction(1))
    copy.put(1, **transaction(2))
    copy.mark(ControlType.COMMIT, 1)
    copy.roll()
    copy.mark(ControlType.COMMIT, 2)
    for committed in (False, True):
        assert offsets(copy.answer(0, committed=committed)[0]) == [0, 1, 2]
        headers, _, aborted = copy.answer(2, committed=committed)
        assert offsets(headers) == [3]
        assert not aborted
        assert copy.answer(4, committed=committed)[0] == []
    copy.put()
    assert offsets(copy.answer(2)[0]) == [4]


def test_aborted_records_are_passed_over_for_who_reads_committed_ones() -> None:
    copy = Copy()
    for sequence in range(4):
        copy.put(2, **transaction(7, 2 * sequence))
    copy.mark(ControlType.ABORT, 7)
    copy.roll()
    wanted = copy.put(1, **transaction(7, 8))
    copy.mark(ControlType.COMMIT, 7)
    assert offsets(copy.answer(0)[0]) == [0, 2, 4, 6, 8]
    headers, _, aborted = copy.answer(0, committed=True)
    assert offsets(headers) == [wanted, wanted + 1]
    assert not aborted, "else the producer's next transaction would be taken for an aborted one"
    assert offsets(copy.answer(0, committed=True, end=wanted)[0]) == [8]


def test_the_end_of_an_aborted_transaction_is_given_to_who_read_its_beginning() -> None:
    """Some clients remember from one answer to the next which producers they ignore."""
    copy = Copy()
    copy.put(1, **transaction(7))
    copy.roll()
    copy.put(1, **transaction(7, 1))
    copy.roll()
    marker = copy.mark(ControlType.ABORT, 7)
    copy.put(1, **transaction(7, 2))
    copy.mark(ControlType.COMMIT, 7)
    headers, _, aborted = copy.answer(1, committed=True)
    assert offsets(headers) == [marker, marker + 1, marker + 2]
    assert [each.first_offset for each in aborted] == [0]
    assert offsets(copy.answer(0, committed=True)[0]) == [marker + 1, marker + 2]
    assert offsets(copy.answer(marker)[0]) == [marker + 1, marker + 2], "without isolation"


def test_a_long_walk_ends_with_a_batch_that_moves_the_client_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consumer_read, "WALK_BATCHES_MAX", 10)
    copy = Copy()
    for sequence in range(100):
        copy.put(1, **transaction(7, sequence))
    copy.mark(ControlType.ABORT, 7)
    copy.put()
    position, answers = 0, 0
    while position < 101:
        headers, _, aborted = copy.answer(position, 800, committed=True)
        assert [each.producer_id for each in aborted] in ([7], [])
        position = headers[-1].next_offset
        answers += 1
    assert 2 < answers < 20
    assert position == 102


def test_empty_batches_do_not_end_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_read, "WALK_BATCHES_MAX", 10)
    copy = Copy()
    for _ in range(100):
        copy.put_void()
    wanted = copy.put()
    assert offsets(copy.answer(0, 200)[0]) == [wanted]


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_a_batch_whose_last_records_went_gives_nothing_behind_them(codec: str) -> None:
    copy = Copy()
    copy.put_cut(3, 10, codec=codec)
    copy.roll()
    wanted = copy.put()
    for _ in range(2):
        for offset in (0, 1, 2):
            assert offsets(copy.answer(offset)[0]) == [0]
        for offset in range(3, 10):
            assert offsets(copy.answer(offset)[0]) == [wanted]
            assert offsets(copy.answer(offset, end=10)[0]) == [0]
        copy.reopen()


def test_a_small_limit_is_kept() -> None:
    copy = Copy()
    copy.put_void()
    copy.roll()
    copy.put(20)
    assert offsets(copy.answer(0, 1)[0]) == [1]
    headers, data, _ = copy.answer(0, 100, at_least_one=False)
    assert (headers, len(data)) == ([], 100)


def test_nothing_stays_pinned_when_an_index_cannot_be_read() -> None:
    copy = Copy()
    copy.put(1, **transaction(7))
    copy.mark(ControlType.ABORT, 7)
    copy.roll()
    copy.put()
    copy.reopen()
    (name,) = [each for each in copy.disk.list("/data/t-0") if each.endswith(".txnindex")]
    copy.disk.write(f"/data/t-0/{name}", b"no")
    copy.log.segments[0].drop_indexes()
    with pytest.raises(CorruptFileError):
        copy.answer(0, committed=True)
    assert not any(segment.file.pins for segment in copy.log.segments)


# -- random logs and clients ----------------------------------------------------------------------


class Story:
    """A log of random batches, and what each kind of reader must get of it."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.copy = Copy(random, segment_bytes=random.choice((300, 900, 10**6)))
        self.sequences = {1: 0, 2: 0}
        self.open: dict[int, list[int]] = {}
        self.all: set[int] = set()
        self.aborted: set[int] = set()
        ends = [0]
        for _ in range(random.choice((10, 40, 120))):
            self._append()
            ends.append(self.copy.log.log_end_offset)
        self.copy.log.set_high_watermark(random.choice(ends[len(ends) // 2 :]))
        if random.random() < 0.5:
            watermark = self.copy.log.high_watermark
            self.copy.reopen()
            self.copy.log.set_high_watermark(watermark)

    def _append(self) -> None:
        random, copy = self.random, self.copy
        codec = random.choice(("none", "none", "zstd"))
        count = random.choice((1, 2, 7))
        act = random.random()
        if act < 0.25:
            copy.put_void(count)
        elif act < 0.35:
            kept = random.randrange(1, count + 1)
            base = copy.put_cut(kept, count, codec=codec)
            self.all |= set(range(base, base + kept))
        elif act < 0.5:
            base = copy.put(count, codec=codec)
            self.all |= set(range(base, base + count))
        elif act < 0.75:
            producer = random.choice((1, 2))
            base = copy.put(count, codec=codec, **transaction(producer, self.sequences[producer]))
            self.sequences[producer] += count
            self.open.setdefault(producer, []).extend(range(base, base + count))
        elif act < 0.95 and self.open:
            producer = random.choice(sorted(self.open))
            ending = random.choice((ControlType.ABORT, ControlType.ABORT, ControlType.COMMIT))
            written = self.open.pop(producer)
            self.all |= set(written)
            if ending is ControlType.ABORT:
                self.aborted |= set(written)
            copy.mark(ending, producer)
        else:
            copy.roll()

    def any_size(self) -> int:
        return self.random.choice((1, 100, 500, 5000))

    def expected(self, start: int, end: int, *, committed: bool) -> list[int]:
        wanted = self.all - self.aborted if committed else self.all.union(*self.open.values())
        return sorted(offset for offset in wanted if start <= offset < end)


@pytest.mark.parametrize("start", range(0, 200, 20))
def test_every_reader_gets_all_that_is_for_it_and_no_answer_in_vain(start: int) -> None:
    for seed in range(start, start + 20):
        story = Story(seed)
        log = story.copy.log
        for committed in (False, True):
            end = log.last_stable_offset if committed else log.high_watermark
            for begin in {0, *(story.random.randrange(end + 1) for _ in range(10))}:
                expected = story.expected(begin, end, committed=committed)
                for remembers in (False, True):
                    found = read_all(
                        log, begin, story.any_size, committed=committed, remembers=remembers
                    )
                    assert [record.offset for record in found] == expected
        assert not any(segment.file.pins for segment in log.segments)
