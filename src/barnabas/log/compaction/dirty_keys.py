"""The keys of a log's dirty part, entered into the map of newest offsets.

Records of aborted transactions are left out: they replace nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from barnabas.kernels import (
    CONTROL_BIT,
    HEADER_SIZE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    check_batch,
    scan_batch,
)
from barnabas.log.batch_reader import BatchReader
from barnabas.log.compaction.offset_map import OffsetMap
from barnabas.log.compaction.work import WORK_BYTES, Aborted, Means, Work, give_way, go_on
from barnabas.log.partition_log import PartitionLog
from barnabas.log.replay import marker_of
from barnabas.log.transactions_seen import TransactionsSeen
from barnabas.log.validation import stored_bounds
from barnabas.records.bounded_decompression import read_chunks
from barnabas.records.bounds import Bounds


def fill_map(
    log: PartitionLog,
    offset_map: OffsetMap,
    first_dirty: int,
    end: int,
    means: Means,
    is_aborted: Callable[[], bool],
) -> Generator[Work, None, int]:
    """Enter the dirty part, and return the offset up to which it fits."""
    seen = TransactionsSeen(log.aborted_transactions(first_dirty, end))
    for segment in log.segments_between(first_dirty, end):
        if not log.holds([segment]):
            raise Aborted
        located = segment.locate(max(first_dirty, segment.base_offset))
        if located is None:
            continue
        pinned = segment.file
        reader = BatchReader(pinned.pin(), located[0], segment.size_bytes, means.buffer_bytes)
        try:
            bounds = stored_bounds(log.options)
            mapping = _Mapping(offset_map, seen, reader, first_dirty, bounds)
            while not reader.done and mapping.full_at < 0:
                go_on(is_aborted)
                yield mapping.work
        finally:
            pinned.unpin()
        if mapping.full_at >= 0:
            return mapping.full_at
    return end


class _Mapping:
    """The walk over one segment that fills the map."""

    def __init__(
        self,
        offset_map: OffsetMap,
        seen: TransactionsSeen,
        reader: BatchReader,
        start: int,
        bounds: Bounds,
    ) -> None:
        self.full_at = -1
        self._bounds = bounds
        self._map = offset_map
        self._seen = seen
        self._reader = reader
        self._start = start

    def work(self) -> int:
        reader, done = self._reader, 0
        while not reader.done and self.full_at < 0 and done < WORK_BYTES:
            reader.at, self.full_at = self._map.put_batches(
                reader.buffer, reader.at, reader.filled, self._start
            )
            if self.full_at < 0 and not reader.done:
                header = reader.whole()
                if header is None:
                    give_way()
                    done += reader.fill()
                elif header.is_message:
                    self._put_old()
                else:
                    self._put_special(header)
        return done

    def _put_old(self) -> None:
        """Enter an entry of an older format, or messages that follow each other."""
        start = self._reader.at
        batch = self._reader.take_old(packed=False)
        header = scan_batch(batch)
        records = memoryview(batch)[HEADER_SIZE:]
        self.full_at = self._map.put_records(records, header.count, header.base_offset, self._start)
        if self.full_at >= 0:
            self._reader.at = start

    def _put_special(self, header: BatchHeader) -> None:
        """Enter a compressed or transactional batch, or skip a control batch."""
        reader, position = self._reader, self._reader.at
        check_batch(reader.buffer, position, position + header.size)
        attributes = header.attributes
        if attributes & CONTROL_BIT:
            marker = marker_of(reader.buffer, position, header)
            if marker is not None:
                self._seen.see_marker(header, marker.type)
        elif not (attributes & TRANSACTIONAL_BIT and self._seen.see_batch(header)):
            for records, count in read_chunks(reader.buffer, position, header, self._bounds):
                self.full_at = self._map.put_records(
                    records, count, header.base_offset, self._start
                )
                if self.full_at >= 0:
                    break
        if self.full_at < 0:
            reader.at += header.size
