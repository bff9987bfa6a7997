"""What is kept of a log's batches, given the map of newest offsets.

`Filtering` is what one compaction knows; plain batches go through it in a kernel, many at a time.
`SpecialBatches` does the others, one by one: compressed ones are recompressed only if a record
goes, batches of aborted transactions go, markers stay until no batch of their transaction is left
and their delete horizon has passed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from barnabas.kernels import (
    APPEND_TIME_BIT,
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    check_batch,
    filter_records,
    rebuild_batch,
)
from barnabas.log.compaction.offset_map import OffsetMap
from barnabas.log.partition_log import PartitionLog
from barnabas.log.replay import marker_of
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.log.transactions_seen import TransactionsSeen
from barnabas.log.validation import stored_bounds
from barnabas.records.bounded_decompression import read_chunks
from barnabas.records.compression import compress
from barnabas.records.packing import Packing


class Filtering:
    """Decides which records are kept; one for all segments of a compaction, in order."""

    def __init__(
        self, log: PartitionLog, offset_map: OffsetMap, map_end: int, end: int, now_ms: int
    ) -> None:
        self.slots = offset_map.slots
        self.bounds = stored_bounds(log.options)
        self.map_end = map_end
        self.now_ms = now_ms
        self.horizon_ms = now_ms + log.options.delete_retention_ms
        self.seen = TransactionsSeen(log.aborted_transactions(log.segments[0].base_offset, end))
        # Of active producers: the last batch, or the epoch of the last marker where there is none.
        self.last_offsets: list[int] = []
        self.marker_epochs: dict[int, int] = {}
        for entry in log.producers:
            if entry.batches:
                self.last_offsets.append(entry.batches[-1].last_offset)
            else:
                self.marker_epochs[entry.producer_id] = entry.epoch


class _Kept(NamedTuple):
    """The records of a batch that are kept; None if they are too many to hold in memory."""

    records: Buffer | None
    count: int  # type: ignore[assignment]  # of records; hides tuple.count
    tombstones: bool
    delta_max: int


class SpecialBatches:
    """The batches of one new segment that are compressed, transactional or control."""

    def __init__(
        self,
        filtering: Filtering,
        tail: int,
        retained: frozenset[int],
        add_aborted: Callable[[AbortedTransaction], None],
    ) -> None:
        """Keep batches that end at a retained offset, the tail among them, if only as headers."""
        self.changed = False
        self._filtering = filtering
        self._tail = tail
        self._retained = retained
        self._add_aborted = add_aborted
        self._buffer: Buffer = b""
        self._position = 0

    def filter(self, buffer: Buffer, position: int, header: BatchHeader) -> Buffer:
        """Return what is kept of the whole batch at a position."""
        check_batch(buffer, position, position + header.size)
        self._buffer, self._position = buffer, position
        if header.is_control:
            return self._filter_marker(header)
        aborted = header.is_transactional and self._filtering.seen.see_batch(header)
        return self._filter_data(header, aborted)

    def _original(self, header: BatchHeader) -> memoryview:
        return memoryview(self._buffer)[self._position : self._position + header.size]

    def _filter_data(self, header: BatchHeader, aborted: bool) -> Buffer:
        filtering = self._filtering
        attributes, base_timestamp = header.attributes, header.base_timestamp
        if aborted or not header.count:
            return self._emptied(header)
        has_horizon = attributes & DELETE_HORIZON_BIT != 0
        drop, shift = has_horizon and filtering.now_ms >= base_timestamp, 0
        kept = self._keep(header, drop, shift)
        if not kept.count:
            return self._emptied(header)
        if kept.tombstones and not has_horizon and header.last_offset < filtering.map_end:
            shift = _wrap(base_timestamp - filtering.horizon_ms)
            attributes |= DELETE_HORIZON_BIT
            base_timestamp = filtering.horizon_ms
            kept = self._keep(header, drop, shift)
        elif kept.count == header.count:
            return self._original(header)
        self.changed = True
        max_timestamp = header.max_timestamp
        if not attributes & APPEND_TIME_BIT:
            max_timestamp = _wrap(base_timestamp + kept.delta_max)
        codec = attributes & CODEC_MASK
        if kept.records is None:
            packing = Packing(codec)
            self._keep(header, drop, shift, packing)
            packed: Buffer = packing.finish()
        else:
            packed = compress(codec, kept.records) if codec else kept.records
        return rebuild_batch(
            self._buffer,
            self._position,
            packed,
            count=kept.count,
            attributes=attributes,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
        )

    def _keep(
        self, header: BatchHeader, drop: bool, shift: int, packing: Packing | None = None
    ) -> _Kept:
        """Take a batch through the map; what stays of a large one is only counted, or packed."""
        filtering = self._filtering
        chunks = read_chunks(self._buffer, self._position, header, filtering.bounds)
        count, tombstones, delta_max = 0, False, -(1 << 63)
        stays: Buffer = b""
        for records, number in chunks:
            kept, kept_count, has_tombstones, delta = filter_records(
                filtering.slots,
                records,
                0,
                len(records),
                count=number,
                base_offset=header.base_offset,
                map_end=filtering.map_end,
                drop_tombstones=drop,
                shift=shift,
            )
            stays = records if kept is None else kept
            if packing is not None:
                packing.add(stays)
            count += kept_count
            tombstones = tombstones or has_tombstones
            if kept_count:
                delta_max = max(delta_max, delta)
        return _Kept(stays if isinstance(chunks, tuple) else None, count, tombstones, delta_max)

    def _emptied(self, header: BatchHeader) -> Buffer:
        """Return only the header if it must be kept, else nothing."""
        if header.last_offset not in self._retained:
            self.changed = True
            return b""
        if not header.count:
            return self._original(header)
        self.changed = True
        attributes = header.attributes & ~(DELETE_HORIZON_BIT | CODEC_MASK)
        return rebuild_batch(
            self._buffer,
            self._position,
            b"",
            count=0,
            attributes=attributes,
            base_timestamp=NO_TIMESTAMP,
            max_timestamp=header.max_timestamp,
        )

    def _filter_marker(self, header: BatchHeader) -> Buffer:
        filtering, original = self._filtering, self._original(header)
        marker = marker_of(self._buffer, self._position, header)
        if marker is None:
            # Of another kind; or emptied before, and then only a segment's end.
            if header.count or header.last_offset == self._tail:
                return original
            self.changed = True
            return b""
        needed, aborted = filtering.seen.see_marker(header, marker.type)
        if needed:
            if aborted is not None:
                self._add_aborted(aborted)
            return original
        offset, attributes = header.last_offset, header.attributes
        base_timestamp = header.base_timestamp
        if not attributes & DELETE_HORIZON_BIT:
            if offset >= filtering.map_end:
                return original
            self.changed = True
            shift = _wrap(base_timestamp - filtering.horizon_ms)
            records = original[HEADER_SIZE:]
            kept, _, _, delta_max = filter_records(
                b"",
                records,
                0,
                len(records),
                count=header.count,
                base_offset=header.base_offset,
                map_end=header.base_offset,
                shift=shift,
            )
            return rebuild_batch(
                self._buffer,
                self._position,
                records if kept is None else kept,
                count=header.count,
                attributes=attributes | DELETE_HORIZON_BIT,
                base_timestamp=filtering.horizon_ms,
                max_timestamp=_wrap(filtering.horizon_ms + delta_max),
            )
        if filtering.now_ms < base_timestamp or offset == self._tail:
            return original
        if filtering.marker_epochs.get(header.producer_id) == header.producer_epoch:
            # The only trace of the producer's epoch, which keeps older ones out.
            return original
        self.changed = True
        return b""


def _wrap(value: int) -> int:
    """Return the value as a signed 64-bit register would hold it."""
    return ((value + (1 << 63)) & 0xFFFFFFFFFFFFFFFF) - (1 << 63)
