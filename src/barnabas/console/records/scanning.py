"""Fetched bytes become rows: batches are walked, skipped where possible, and filtered.

This is the work that takes time, so it runs on a thread; it is synchronous, and gives way every
quarter of a millisecond: a thread that only computes would keep the GIL from the broker's loop for
five milliseconds at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.console.records.decoding import Decoded, Decoder
from barnabas.console.records.filter_evaluation import ALL, Pruning, Test
from barnabas.console.records.rows import Kind, Outcome, Row
from barnabas.kernels import BatchHeader, Record, read_records
from barnabas.kernels.batch_header import HEADER_SIZE, MAGIC_AT
from barnabas.model.errors import BarnabasError
from barnabas.records.batch import read_header
from barnabas.records.bounded_decompression import read_chunks
from barnabas.records.bounds import Bounds
from barnabas.records.control import ControlType, read_marker
from barnabas.records.legacy import iterate_messages
from barnabas.records.message_set import scan_message

UNPACKED: Final = Bounds(record=16 << 20, batch=128 << 20)
"""Limits on what one compressed batch may unpack to; above them it is reported, not searched."""

_LOOK_EVERY: Final = 32  # records between looks at the clock


@dataclass(slots=True)
class Wanted:
    """What is looked for in the bytes of one partition."""

    partition: int
    low: int
    high: int
    """The offsets that are wanted: from low, before high."""
    key: Decoder
    value: Decoder
    test: Test | None = None
    pruning: Pruning = ALL
    everything: bool = False
    """Whether markers and holes become rows, too."""
    rows_max: int = 2**63 - 1
    """How many rows are kept: those with the highest offsets, reading forward the lowest."""
    forward: bool = False


@dataclass(slots=True)
class Scanned:
    """What was found, and what was looked at."""

    rows: list[Row] = field(default_factory=list)
    """In the order of offsets."""
    first_offset: int = 0
    next_offset: int = 0
    """The offsets that are done: from the first, before the next."""
    oldest_ms: int | None = None
    newest_ms: int | None = None
    records: int = 0
    size: int = 0
    skipped: int = 0
    """Batches whose header or bytes showed that nothing in them passes."""
    unreadable: int = 0
    """Batches that could not be read."""
    markers: list[tuple[int, int, Outcome]] = field(default_factory=list)
    """Offset, producer id and outcome of each transaction that ends here."""


def end_of(data: memoryview) -> tuple[int, int] | None:
    """Return the first offset of fetched bytes and the one after their last whole batch."""
    first = following = -1
    for header, _ in _entries(data):
        if first < 0:
            first = header.base_offset
        following = header.next_offset
    return None if following < 0 else (first, following)


def scan(data: Iterable[memoryview], wanted: Wanted, give_way: Callable[[], None]) -> Scanned:
    """Return the rows of whole batches; `give_way` is called every few records."""
    return _Scan(wanted, give_way).run(data)


def _entries(data: memoryview) -> Iterator[tuple[BatchHeader, int]]:
    """Yield the header and position of every whole batch or old message."""
    position = 0
    while len(data) - position > MAGIC_AT:
        try:
            if data[position + MAGIC_AT] < 2:
                header = scan_message(data, position)
            elif len(data) - position < HEADER_SIZE:
                return
            else:
                header = read_header(data, position)
        except BarnabasError:
            return  # cut, or damaged: nothing after it can be found
        if header.size > len(data) - position:
            return
        yield header, position
        position += header.size


class _Candidate:
    """The record in hand, as filters see it; one object serves all records."""

    __slots__ = ("_decoded", "_key", "_value", "headers", "key", "offset", "partition",
                 "timestamp", "value")  # fmt: skip

    def __init__(self, partition: int, key: Decoder, value: Decoder) -> None:
        self.partition = partition
        self.offset = 0
        self.timestamp = 0
        self.key: bytes | None = None
        self.value: bytes | None = None
        self.headers: tuple[tuple[str, bytes | None], ...] = ()
        self._key = key
        self._value = value
        self._decoded: dict[str, Decoded] = {}

    def hold(self, record: Record) -> None:
        self.offset = record.offset
        self.timestamp = record.timestamp
        self.key = record.key
        self.value = record.value
        self.headers = record.headers
        if self._decoded:
            self._decoded = {}

    def _side(self, side: str) -> Decoded:
        found = self._decoded.get(side)
        if found is None:
            if side == "key":
                found = self._key(self.key)
            else:
                found = self._value(self.value, self.key)
            self._decoded[side] = found
        return found

    def document(self, side: str) -> Any:
        return self._side(side).document

    def text(self, side: str) -> str | None:
        return self._side(side).text

    def translation(self, side: str) -> str | None:
        decoder = self._key if side == "key" else self._value
        data = self.key if side == "key" else self.value
        if not data or (decoder.keeps_text and data.isascii()):
            return None  # nothing that could have been translated
        found = self._side(side)
        return found.text if found.translated else None


class _Scan:
    def __init__(self, wanted: Wanted, give_way: Callable[[], None]) -> None:
        self._wanted = wanted
        self._give_way = give_way
        self._found = Scanned(first_offset=wanted.low, next_offset=wanted.low)
        self._candidate = _Candidate(wanted.partition, wanted.key, wanted.value)
        self._expected = wanted.low
        needle = wanted.pruning.needle
        # Text can be found in the bytes only where the decoders leave it as it is.
        keeps_text = wanted.key.keeps_text and wanted.value.keeps_text
        self._finder = needle.finder() if needle is not None and keeps_text else None
        self._count = 0

    def run(self, data: Iterable[memoryview]) -> Scanned:
        found, wanted = self._found, self._wanted
        for part in data:
            for header, position in _entries(part):
                if header.next_offset <= wanted.low or header.next_offset <= found.next_offset:
                    continue
                if header.base_offset >= wanted.high:
                    self._hole(wanted.high, header)
                    found.next_offset = wanted.high
                    return found
                found.size += header.size
                self._batch(part, header, position)
                found.next_offset = min(header.next_offset, wanted.high)
                if wanted.forward and len(found.rows) >= wanted.rows_max:
                    # The rest is for the next page.
                    del found.rows[wanted.rows_max :]
                    if found.rows:
                        found.next_offset = found.rows[-1].last_offset + 1
                    return found
        return found

    def _batch(self, data: memoryview, header: BatchHeader, position: int) -> None:
        found = self._found
        pruning = self._wanted.pruning
        self._count += 1
        if self._count % 8 == 0:
            self._give_way()
        if header.max_timestamp >= 0:
            self._saw(header.max_timestamp)
            if header.max_timestamp < pruning.timestamp_min or (
                header.is_append_time and header.max_timestamp > pruning.timestamp_max
            ):
                found.skipped += 1
                found.records += max(header.count, 0)
                self._expected = header.next_offset
                return
        try:
            if header.is_message:
                end = position + header.size
                self._each(iterate_messages(data[position:end], limit=UNPACKED.batch), header)
            elif header.is_control:
                self._control(data, header, position)
            else:
                self._records(data, header, position)
        except BarnabasError as failure:
            found.unreadable += 1
            self._hole(header.base_offset, header)
            found.rows.append(
                Row(
                    Kind.UNREADABLE,
                    self._wanted.partition,
                    max(header.base_offset, self._wanted.low),
                    header.max_timestamp,
                    header.last_offset,
                    batch=header,
                    note=str(failure),
                )
            )
        # What compaction removed at the end of the batch.
        self._hole(min(header.next_offset, self._wanted.high), header)
        self._expected = header.next_offset

    def _records(self, data: memoryview, header: BatchHeader, position: int) -> None:
        append_time = header.max_timestamp if header.is_append_time else None
        finder = self._finder
        for chunk, count in read_chunks(data, position, header, UNPACKED):
            if finder is not None and not finder(bytes(chunk)):
                self._found.skipped += 1
                self._found.records += count
                continue
            self._each(
                read_records(
                    chunk,
                    0,
                    len(chunk),
                    count,
                    header.base_offset,
                    header.base_timestamp,
                    append_time,
                ),
                header,
            )

    def _each(self, records: Iterable[Record], header: BatchHeader) -> None:
        wanted, found = self._wanted, self._found
        low, high, test, candidate = wanted.low, wanted.high, wanted.test, self._candidate
        count = 0
        for record in records:
            count += 1
            if count % _LOOK_EVERY == 0:
                self._give_way()
            offset = record.offset
            if offset < low or offset >= high:
                continue
            if offset > self._expected:
                self._hole(offset, header, record.timestamp)
            self._expected = offset + 1
            found.records += 1
            if test is not None:
                candidate.hold(record)
                if not test(candidate):
                    continue
            found.rows.append(
                Row(
                    Kind.RECORD,
                    wanted.partition,
                    offset,
                    record.timestamp,
                    offset,
                    record.key,
                    record.value,
                    tuple(record.headers),
                    header,
                )
            )
            self._saw(record.timestamp)
        if len(found.rows) > 2 * wanted.rows_max and not wanted.forward:
            # Only reading backward drops rows: their offsets are read again for the next page.
            del found.rows[: -wanted.rows_max]
            found.first_offset = found.rows[0].offset

    def _control(self, data: memoryview, header: BatchHeader, position: int) -> None:
        wanted, found = self._wanted, self._found
        for chunk, count in read_chunks(data, position, header, UNPACKED):
            for record in read_records(
                chunk, 0, len(chunk), count, header.base_offset, header.base_timestamp, None
            ):
                marker = read_marker(record)
                outcome = None
                note = "a control record of an unknown kind"
                if marker is not None:
                    commits = marker.type is ControlType.COMMIT
                    outcome = Outcome.COMMITTED if commits else Outcome.ABORTED
                    found.markers.append((record.offset, header.producer_id, outcome))
                    note = (
                        f"transaction of producer {header.producer_id} {outcome.value}, "
                        f"coordinator epoch {marker.coordinator_epoch}"
                    )
                if wanted.everything and wanted.low <= record.offset < wanted.high:
                    self._hole(record.offset, header)
                    found.rows.append(
                        Row(
                            Kind.MARKER,
                            wanted.partition,
                            record.offset,
                            record.timestamp,
                            record.offset,
                            batch=header,
                            note=note,
                            outcome=outcome,
                        )
                    )
                self._expected = record.offset + 1

    def _hole(self, before: int, header: BatchHeader, timestamp: int | None = None) -> None:
        """Add a row for the offsets that are expected before this one, and are not there."""
        if self._wanted.everything and before > self._expected:
            self._found.rows.append(
                Row(
                    Kind.HOLE,
                    self._wanted.partition,
                    self._expected,
                    header.max_timestamp if timestamp is None else timestamp,
                    before - 1,
                    note="compacted away, or never visible",
                )
            )
        self._expected = max(self._expected, before)

    def _saw(self, timestamp: int) -> None:
        found = self._found
        if found.oldest_ms is None or timestamp < found.oldest_ms:
            found.oldest_ms = timestamp
        if found.newest_ms is None or timestamp > found.newest_ms:
            found.newest_ms = timestamp
