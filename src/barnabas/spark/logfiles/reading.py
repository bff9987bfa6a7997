"""Reads pieces of segment files as Arrow batches; in tasks of a query.

Batches that follow each other in a file, and are wanted whole, are decoded together (a run). A
batch that cannot be read fails the task, is skipped, or becomes a row, depending on `onCorrupt`.
Compressed runs are short: their decompressed records must fit into one Arrow batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.kernels import (
    Buffer,
    ColumnStore,
    RecordCursor,
)
from barnabas.kernels.batch_header import APPEND_TIME_BIT, MAGIC_AT, MESSAGE_ATTRIBUTES_AT
from barnabas.model.errors import BarnabasError, CorruptRecordError
from barnabas.records.bounded_decompression import unpack_chunks
from barnabas.records.control import read_marker
from barnabas.records.conversion import to_batches
from barnabas.spark.logfiles.files import Piece, segments_in
from barnabas.spark.logfiles.options import OFFSET_MAX, LogOptions, OnCorrupt
from barnabas.spark.logfiles.rows import LogRows, Origin
from barnabas.spark.logfiles.transactions import UncommittedBatches, control_record
from barnabas.spark.logfiles.walk import Entry, Flaw, LogFile, walk

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_MAX = 65_536
STORED_BYTES_MAX = 32 * 1024 * 1024
PACKED_RUN_BYTES = 256 * 1024
_PACKED_WEIGHT = 32
"""The weight of compressed bytes: a column of an Arrow batch holds at most 2 GiB."""

_NO_TIMESTAMP_TYPE = -1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class CorruptSegmentError(BarnabasError):
    """Bytes of a segment file that cannot be read."""


def read_pieces(
    pieces: Sequence[Piece], options: LogOptions, layout: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task."""
    rows = LogRows(layout, options.from_ms, options.to_ms)
    for piece in pieces:
        yield from PieceReader(piece, options, rows).read()
    yield from rows.finish()


class PieceReader:
    """Reads one piece into rows."""

    def __init__(self, piece: Piece, options: LogOptions, rows: LogRows) -> None:
        self._piece = piece
        self._options = options
        self._rows = rows
        self._uncommitted = UncommittedBatches(piece.uncommitted)
        self._path = piece.path

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield rows whenever there are enough for a batch."""
        file = self._open()
        if file is None:
            return
        piece = self._piece
        # Inodes are reused: only a file of the same name can be the planned one.
        same = file.inode == piece.inode and file.path.startswith(piece.path)
        position, end = (piece.position, piece.end or file.size) if same else (0, file.size)
        run: list[Entry] = []
        with file:
            for found in walk(file, position, end, piece.base):
                if isinstance(found, Flaw):
                    yield from self._decode(run)
                    run = []
                    if not (found.unfinished and piece.is_last):
                        self._corrupt(found.position, found.size, found.what)
                elif found.header is None:
                    yield from self._decode(run)
                    run = []
                    yield from self._decode_messages(found)
                elif self._is_wanted(found, same):
                    if run and not _follows(run, found):
                        yield from self._decode(run)
                        run = []
                    run.append(found)
                    if not self._is_whole(found):
                        yield from self._decode(run)
                        run = []
            yield from self._decode(run)

    def _open(self) -> LogFile | None:
        """Open the file, or the one with its records if it was renamed or merged since planning."""
        piece = self._piece
        for path in _names(piece):
            try:
                file = LogFile(path)
            except FileNotFoundError:
                continue
            self._path = path
            return file
        self._corrupt(0, piece.size, "the file was deleted since the query was planned")
        return None

    def _is_wanted(self, entry: Entry, same: bool) -> bool:
        """Return whether a batch has records for the query."""
        header, piece, options = entry.header, self._piece, self._options
        assert header is not None
        last_offset = header.last_offset
        if same and not piece.base <= header.base_offset <= last_offset < piece.bound:
            what = f"offsets {header.base_offset} to {last_offset} in the segment from {piece.base}"
            if piece.bound != OFFSET_MAX:
                what += f" to {piece.bound - 1}"
            self._corrupt(entry.position, entry.size, what)
            return False
        if last_offset < piece.start or header.base_offset >= piece.until:
            return False
        if options.from_ms is not None and header.max_timestamp < options.from_ms:
            return False
        if header.is_control:
            if options.columns.control and (
                options.to_ms is None or header.max_timestamp < options.to_ms
            ):
                self._add_control(entry)
            return False
        return not (
            header.is_transactional
            and self._uncommitted.holds(header.producer_id, header.base_offset)
        )

    def _is_whole(self, entry: Entry) -> bool:
        assert entry.header is not None
        last_offset = entry.header.last_offset
        return self._piece.start <= entry.header.base_offset and last_offset < self._piece.until

    def _decode(self, run: list[Entry]) -> Iterator[pa.RecordBatch]:
        """Put the records of a run into the store, past batches that cannot be read."""
        while run:
            first, last = run[0], run[-1]
            buffer = memoryview(first.buffer)[first.at : last.at + last.size]
            cursor = self._cursor(buffer)
            try:
                yield from self._fill(cursor, run)
                return
            except CorruptRecordError as failure:
                # The cursor is before what it could not read, or at the end of the batch that
                # has more bytes than records.
                left = [each for each in run if _next_offset(each) >= cursor.position]
                number = next(n for n, each in enumerate(left) if not self._is_readable(each))
                self._corrupt(left[number].position, left[number].size, str(failure))
                run = left[number + 1 :]

    def _is_readable(self, entry: Entry) -> bool:
        """Return whether all records of a batch can be decoded."""
        cursor = self._cursor(memoryview(entry.buffer)[entry.at : entry.at + entry.size])
        try:
            while cursor.fill(ColumnStore(), ROWS_MAX):
                pass
        except CorruptRecordError:
            return False
        return True

    def _cursor(self, buffer: Buffer) -> RecordCursor:
        piece = self._piece
        unpack = partial(unpack_chunks, bounds=self._options.bounds)
        return RecordCursor(buffer, *piece.partition, piece.start, unpack=unpack, check_crcs=False)

    def _fill(self, cursor: RecordCursor, run: Sequence[Entry]) -> Iterator[pa.RecordBatch]:
        """Move the cursor's records to the store, and record their batches."""
        rows = self._rows
        left = iter(run)
        entry = next(left)
        owed = _count(entry)
        while True:
            yield from self._flushed()
            taken = cursor.fill(rows.store, ROWS_MAX - rows.store.count)
            if not taken:
                break
            while taken:
                if not owed:
                    entry = next(left)
                    owed = _count(entry)
                part = min(taken, owed)
                if part:
                    rows.came_from(self._origin(entry), part)
                taken -= part
                owed -= part
            if cursor.unpacking:  # it may be one large record
                rows.stored_bytes += STORED_BYTES_MAX // 2
        rows.stored_bytes += sum(map(_weight, run))

    def _origin(self, entry: Entry) -> Origin:
        header = entry.header
        assert header is not None
        until = None if header.last_offset < self._piece.until else self._piece.until
        return Origin(
            self._path,
            entry.position,
            base_offset=header.base_offset,
            leader_epoch=header.leader_epoch,
            producer_id=header.producer_id,
            until=until,
        )

    def _decode_messages(self, entry: Entry) -> Iterator[pa.RecordBatch]:
        """Put a message of magic 0 or 1, or those in a wrapper, into the store."""
        rows, piece = self._rows, self._piece
        data = memoryview(entry.buffer)[entry.at : entry.at + entry.size]
        try:
            converted = to_batches(data, self._options.bounds.record, loose_max=2**31 - 1)
        except CorruptRecordError as failure:
            self._corrupt(entry.position, entry.size, str(failure))
            return
        yield from self._flushed()
        taken = self._cursor(converted).fill(rows.store, 2**31 - 1)
        if taken:
            append_time = data[MESSAGE_ATTRIBUTES_AT] & APPEND_TIME_BIT
            kind = _NO_TIMESTAMP_TYPE if data[MAGIC_AT] == 0 else int(append_time != 0)
            base = int.from_bytes(memoryview(converted)[:8], "big")
            rows.came_from(
                Origin(self._path, entry.position, base, timestamp_type=kind, until=piece.until),
                taken,
            )
        rows.stored_bytes += entry.size * _PACKED_WEIGHT

    def _flushed(self) -> Iterator[pa.RecordBatch]:
        if self._rows.count >= ROWS_MAX or self._rows.stored_bytes >= STORED_BYTES_MAX:
            yield from self._rows.finish()

    def _add_control(self, entry: Entry) -> None:
        header = entry.header
        assert header is not None
        try:
            record = control_record(entry)
            marker = None if record is None else read_marker(record)
        except CorruptRecordError as failure:
            self._corrupt(entry.position, entry.size, str(failure))
            return
        if record is None:
            return
        kind = "OTHER" if marker is None else marker.type.name
        self._add(
            entry.position,
            key=record.key,
            value=record.value,
            offset=record.offset,
            timestamp=_EPOCH + timedelta(milliseconds=record.timestamp),
            timestampType=0,
            baseOffset=header.base_offset,
            leaderEpoch=header.leader_epoch,
            producerId=header.producer_id,
            controlType=kind,
        )

    def _corrupt(self, position: int, size: int, what: str) -> None:
        text = f"{self._path} at {position}, {size} bytes: {what}"
        if self._options.on_corrupt is OnCorrupt.FAIL:
            raise CorruptSegmentError(
                f"{text}. To continue without them, set onCorrupt to skip, or to report, which "
                "returns a row for each of them"
            )
        if self._options.on_corrupt is OnCorrupt.REPORT:
            self._add(position, corrupt=text)

    def _add(self, position: int, **cells: Any) -> None:
        partition = self._piece.partition
        self._rows.add(
            topic=partition.topic,
            partition=partition.partition,
            segment=self._path,
            position=position,
            **cells,
        )


def _names(piece: Piece) -> Iterator[str]:
    """Yield the path of a segment, after a rename, or of the one that compaction merged it into."""
    yield piece.path
    yield f"{piece.path}.deleted"
    for base, path in reversed(segments_in(os.path.dirname(piece.path))):
        if base <= piece.base:
            yield path
            return


def _next_offset(entry: Entry) -> int:
    assert entry.header is not None
    return entry.header.next_offset


def _count(entry: Entry) -> int:
    assert entry.header is not None
    return entry.header.count


def _weight(entry: Entry) -> int:
    assert entry.header is not None
    return entry.size * (_PACKED_WEIGHT if entry.header.is_compressed else 1)


def _follows(run: list[Entry], entry: Entry) -> bool:
    """Return whether a batch can be decoded together with those before it."""
    last = run[-1]
    assert last.header is not None
    assert entry.header is not None
    if entry.buffer is not last.buffer or entry.at != last.at + last.size:
        return False
    if entry.header.base_offset <= last.header.last_offset:
        return False  # a cursor skips offsets that it is past
    packed = entry.at - run[0].at
    return not entry.header.is_compressed or packed < PACKED_RUN_BYTES
