"""Compaction of one log: of each key only the newest record stays, at its offset.

First the keys of the dirty part go into a map, as many as fit. Then all closed segments up to there
are written anew through the map, several small ones into one, and take their place.

What a reader may rely on, whenever it reads: offsets and order never change; the newest record of
every key is there; a tombstone stays for `delete.retention.ms` after the older records of its key
went; every batch of an open transaction is there. What the log needs: the last batch of an active
producer stays (its sequence goes on from there), a marker stays while a batch of its transaction
does, and the last batch of every segment stays, if only as an empty header, so that no hole opens
between segments and the log's end can always be found.

`compact` is a generator: it runs on the log's own thread and yields the work that may run on
another one, which touches only files that are pinned or not yet part of the log. Names change in
steps that a crash can interrupt anywhere:

    .cleaned      written, flushed, named    a start throws them away
    .swap         renamed, flushed           a start puts them in place
    in the log    the old files are renamed .deleted, flushed, then .swap loses its suffix
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, TypeAlias

from barnabas.config.topic import TopicOptions
from barnabas.kernels import (
    APPEND_TIME_BIT,
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    NO_TIMESTAMP,
    SPECIAL_MASK,
    TRANSACTIONAL_BIT,
    Buffer,
    HeaderFields,
    check_batch,
    filter_batches,
    filter_records,
    rebuild_batch,
    scan_batches,
)
from barnabas.log.batch_reader import BatchReader
from barnabas.log.file_pool import FilePool
from barnabas.log.offset_index import OFFSET_SPAN_MAX
from barnabas.log.offset_map import OffsetMap
from barnabas.log.partition_log import PartitionLog
from barnabas.log.recovery import CLEANED, SWAP
from barnabas.log.replay import marker_of
from barnabas.log.segment import LOG, SUFFIXES, Segment
from barnabas.log.transactions_seen import TransactionsSeen
from barnabas.model.errors import ConfigError
from barnabas.records.batch import BatchHeader, unpack
from barnabas.records.compression import Codec, compress

WORK_BYTES = 4 * 1024 * 1024
"""How much one piece of work reads or writes: short enough to stop soon, or to wait after it."""

OUT_BYTES = 64 * 1024
"""How much is written, and entered into the indexes, at a time. The loop waits for the GIL while
batches are entered, and not while they are read, filtered and written."""

Work: TypeAlias = Callable[[], int]  # returns how many bytes it read and wrote
Steps: TypeAlias = Generator[Work, None, "Compacted"]


class Means(NamedTuple):
    """What a compaction may use."""

    map_bytes: int
    load_factor: float
    buffer_bytes: int


class Compacted(NamedTuple):
    """What a compaction did."""

    end_offset: int  # below it, the log is clean
    bytes_before: int
    bytes_after: int


class Aborted(Exception):
    """The compaction was told to stop, or its segments are no longer those of the log."""


def compact(
    log: PartitionLog,
    first_dirty: int,
    end: int,
    means: Means,
    now_ms: int,
    *,
    unlink_later: Callable[[list[str]], None],
    is_aborted: Callable[[], bool] = lambda: False,
) -> Steps:
    """Compact the segments below `end`, which is the base of a later one.

    `first_dirty` is where the last compaction ended. The caller runs each piece of work, throws
    its failure into the generator, and never drops it half way. Old files are renamed as deleted
    and handed to `unlink_later`, because readers may still be sent from them.
    """
    offset_map = OffsetMap(means.map_bytes, means.load_factor, end - first_dirty)
    reached = yield from _fill_map(log, offset_map, first_dirty, end, means, is_aborted)
    if reached == first_dirty:
        raise ConfigError(
            f"no key of {log.topic_partition} from offset {first_dirty} on fits into "
            f"{means.map_bytes} bytes: log.cleaner.dedupe.buffer.size is too small"
        )
    segments = [segment for segment in log.segments if segment.base_offset < reached]
    filtering = _Filtering(log, offset_map, reached, end, now_ms)
    before = after = 0
    for group in group_segments(segments, end, log.options):
        new = yield from _rewrite(log, group, filtering, means, is_aborted)
        before += sum(segment.size_bytes for segment in group)
        after += group[0].size_bytes if new is None else new.size_bytes
        if new is not None:
            yield from _swap(log, group, new, unlink_later)
    return Compacted(reached, before, after)


def run(steps: Steps) -> Compacted:
    """Do all the work here and now."""
    try:
        work = next(steps)
        while True:
            try:
                work()
            except BaseException as failure:  # noqa: BLE001  # goes on to the generator
                work = steps.throw(failure)
            else:
                work = next(steps)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def group_segments(
    segments: Sequence[Segment], end: int, options: TopicOptions
) -> list[list[Segment]]:
    """Put neighbours together that fit into one segment by bytes, index entries and offsets."""
    groups: list[list[Segment]] = []
    size = 0
    # An index entry stands for more than so many bytes; the larger ones have 12 bytes.
    entries_max = options.segment_index_bytes // 12 - 1
    bytes_max = min(
        options.segment_bytes, entries_max * max(options.index_interval_bytes, HEADER_SIZE)
    )
    bases = [segment.base_offset for segment in segments[1:]]
    for segment, following in zip(segments, [*bases, end], strict=True):
        size += segment.size_bytes
        start = groups[-1][0].base_offset if groups else segment.base_offset
        if groups and size <= bytes_max and following - 1 - start <= OFFSET_SPAN_MAX:
            groups[-1].append(segment)
        else:
            groups.append([segment])
            size = segment.size_bytes
    return groups


# -- the map ------------------------------------------------------------------------------------


def _fill_map(
    log: PartitionLog,
    offset_map: OffsetMap,
    first_dirty: int,
    end: int,
    means: Means,
    is_aborted: Callable[[], bool],
) -> Generator[Work, None, int]:
    """Enter the dirty part, and return the offset up to which it fitted."""
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
            mapping = _Mapping(offset_map, seen, reader, first_dirty)
            while not reader.done and mapping.full_at < 0:
                _go_on(is_aborted)
                yield mapping.work
        finally:
            pinned.unpin()
        if mapping.full_at >= 0:
            return mapping.full_at
    return end


def _go_on(is_aborted: Callable[[], bool]) -> None:
    if is_aborted():
        raise Aborted


class _Mapping:
    """The walk over one segment that fills the map."""

    def __init__(
        self, offset_map: OffsetMap, seen: TransactionsSeen, reader: BatchReader, start: int
    ) -> None:
        self.full_at = -1
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
                fields = reader.whole()
                if fields is None:
                    done += reader.fill()
                else:
                    self._put_special(fields)
        return done

    def _put_special(self, fields: HeaderFields) -> None:
        """Enter a compressed or transactional batch, or pass over a control batch."""
        reader, position = self._reader, self._reader.at
        check_batch(reader.buffer, position, position + fields[1])
        header = BatchHeader._make(fields)
        if header.is_control:
            marker = marker_of(reader.buffer, position, fields)
            if marker is not None:
                self._seen.see_marker(fields, marker.type)
        elif not (header.is_transactional and self._seen.see_batch(fields)):
            records = unpack(reader.buffer, header, position)
            self.full_at = self._map.put_records(
                records, header.count, header.base_offset, self._start
            )
        if self.full_at < 0:
            reader.at += fields[1]


# -- writing anew -------------------------------------------------------------------------------


class _Filtering:
    """What decides which records stay; one for all segments of a compaction, in order."""

    def __init__(
        self, log: PartitionLog, offset_map: OffsetMap, map_end: int, end: int, now_ms: int
    ) -> None:
        self.slots = offset_map.slots
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


def _rewrite(
    log: PartitionLog,
    group: list[Segment],
    filtering: _Filtering,
    means: Means,
    is_aborted: Callable[[], bool],
) -> Generator[Work, None, Segment | None]:
    """Write a group through the map into one segment; None when that would change nothing."""
    if not log.holds(group):
        raise Aborted
    new = Segment(
        FilePool(group[0].pool.files, limit=4),
        log.directory,
        group[0].base_offset,
        created_ms=group[0].created_ms,
        index_interval_bytes=log.options.index_interval_bytes,
        suffix=CLEANED,
    )
    tail = log.end_of(group[-1]) - 1
    changed_ms = new.pool.files.mtime_ms(group[-1].path(LOG))
    writing = _Writing(new, filtering, tail, changed_ms, means.buffer_bytes)
    pinned = [segment.file for segment in group]
    opened = [file.pin() for file in pinned]
    try:
        for file, segment in zip(opened, group, strict=True):
            writing.reader = BatchReader(file, 0, segment.size_bytes, means.buffer_bytes)
            while not writing.reader.done:
                _go_on(is_aborted)
                yield writing.work
        if len(group) == 1 and not writing.changed:
            yield writing.discard
            return None
        yield writing.finish
        return new
    except BaseException:
        new.remove()
        raise
    finally:
        for unpinned in pinned:
            unpinned.unpin()


class _Writing:
    """One new segment while it is written."""

    def __init__(
        self,
        new: Segment,
        filtering: _Filtering,
        tail: int,
        changed_ms: int | None,
        buffer_bytes: int,
    ) -> None:
        self.reader: BatchReader
        self.changed = False
        self._new = new
        self._filtering = filtering
        self._tail = tail
        self._changed_ms = changed_ms
        self._retained_set = frozenset((*filtering.last_offsets, tail))
        self._retained = array("q", sorted(self._retained_set)).tobytes()
        self._out = bytearray(min(buffer_bytes, OUT_BYTES))
        self._size = 0  # of what waits in _out
        self._created = False

    def work(self) -> int:
        reader, filtering, done = self.reader, self._filtering, 0
        while not reader.done and done < WORK_BYTES:
            reader.at, self._size, changed = filter_batches(
                filtering.slots,
                reader.buffer,
                reader.at,
                reader.filled,
                self._out,
                self._size,
                filtering.map_end,
                filtering.now_ms,
                filtering.horizon_ms,
                self._retained,
            )
            self.changed = self.changed or changed
            if reader.done:
                break
            fields = reader.whole()
            if fields is None:
                done += reader.fill()
            elif fields[5] & SPECIAL_MASK:
                self._put(self._filter_special(fields))
                reader.at += fields[1]
            else:
                # It fits the reader and not what is left of the output: make room.
                done += self._write_out()
                room = fields[1] + 11 * fields[12]
                if len(self._out) < room:
                    self._out = bytearray(room)
        return done

    def finish(self) -> int:
        """Make all that was written last, under its temporary name."""
        size = self._write_out()
        new, files = self._new, self._new.pool.files
        new.save_indexes()
        if self._changed_ms is not None:
            # Retention goes by it where records have no time.
            files.set_mtime_ms(new.path(LOG), self._changed_ms)
        new.file.get().flush()
        new.flush_side_files()
        new.forget_tail(self._tail)
        new.drop_indexes()
        new.let_go()
        assert new.size_bytes == files.size(new.path(LOG)), new.path(LOG)
        return size

    def discard(self) -> int:
        """Remove what was written."""
        self._new.remove()
        return 0

    def _put(self, batch: Buffer) -> None:
        if self._size + len(batch) > len(self._out):
            self._write_out()
        if len(batch) > len(self._out):
            self._out = bytearray(len(batch))
        self._out[self._size : self._size + len(batch)] = batch
        self._size += len(batch)

    def _write_out(self) -> int:
        new, size = self._new, self._size
        if not self._created:
            new.create()
            self._created = True
        with memoryview(self._out) as view, view[:size] as data:
            new.file.get().pwrite(data, new.size_bytes)
            for fields in scan_batches(data):
                new.index_batch(new.size_bytes, fields)
                new.size_bytes += fields[1]
        self._size = 0
        return size

    # -- batches that are not plain -----------------------------------------------------------

    def _filter_special(self, fields: HeaderFields) -> Buffer:
        """Return what stays of a compressed, transactional or control batch."""
        reader = self.reader
        check_batch(reader.buffer, reader.at, reader.at + fields[1])
        if fields[5] & CONTROL_BIT:
            return self._filter_marker(fields)
        aborted = bool(fields[5] & TRANSACTIONAL_BIT) and self._filtering.seen.see_batch(fields)
        return self._filter_data(fields, aborted)

    def _original(self, fields: HeaderFields) -> memoryview:
        at = self.reader.at
        return memoryview(self.reader.buffer)[at : at + fields[1]]

    def _filter_data(self, fields: HeaderFields, aborted: bool) -> Buffer:
        filtering, attributes, base_timestamp = self._filtering, fields[5], fields[7]
        last_offset = fields[0] + fields[6]
        kept: Buffer | None = b""
        kept_count, delta_max = 0, 0
        if not aborted and fields[12]:
            records = unpack(self.reader.buffer, BatchHeader._make(fields), self.reader.at)
            has_horizon = attributes & DELETE_HORIZON_BIT != 0
            drop = has_horizon and filtering.now_ms >= base_timestamp
            place = (0, len(records), fields[12], fields[0], filtering.map_end, drop)
            kept, kept_count, tombstones, delta_max = filter_records(
                filtering.slots, records, *place
            )
            if tombstones and not has_horizon and last_offset < filtering.map_end:
                shift = _wrap(base_timestamp - filtering.horizon_ms)
                attributes |= DELETE_HORIZON_BIT
                base_timestamp = filtering.horizon_ms
                kept, _, _, delta_max = filter_records(filtering.slots, records, *place, shift)
                kept = records if kept is None else kept
            if kept is None:
                return self._original(fields)
        if not kept_count:
            return self._emptied(fields)
        self.changed = True
        assert kept is not None
        codec = attributes & CODEC_MASK
        max_timestamp = fields[8]
        if not attributes & APPEND_TIME_BIT:
            max_timestamp = _wrap(base_timestamp + delta_max)
        return rebuild_batch(
            self.reader.buffer,
            self.reader.at,
            compress(Codec.of(codec), kept) if codec else kept,
            kept_count,
            attributes,
            base_timestamp,
            max_timestamp,
        )

    def _emptied(self, fields: HeaderFields) -> Buffer:
        """Return the header alone where it must stay, else nothing."""
        if fields[0] + fields[6] not in self._retained_set:
            self.changed = True
            return b""
        if not fields[12]:
            return self._original(fields)
        self.changed = True
        attributes = fields[5] & ~(DELETE_HORIZON_BIT | CODEC_MASK)
        reader = self.reader
        return rebuild_batch(reader.buffer, reader.at, b"", 0, attributes, NO_TIMESTAMP, fields[8])

    def _filter_marker(self, fields: HeaderFields) -> Buffer:
        filtering, original = self._filtering, self._original(fields)
        marker = marker_of(self.reader.buffer, self.reader.at, fields)
        if marker is None:
            # Of another kind; or emptied before, and then only a segment's end.
            if fields[12] or fields[0] + fields[6] == self._tail:
                return original
            self.changed = True
            return b""
        needed, aborted = filtering.seen.see_marker(fields, marker.type)
        if needed:
            if aborted is not None:
                self._new.add_aborted(aborted)
            return original
        offset, attributes, base_timestamp = fields[0] + fields[6], fields[5], fields[7]
        if not attributes & DELETE_HORIZON_BIT:
            if offset >= filtering.map_end:
                return original
            self.changed = True
            shift = _wrap(base_timestamp - filtering.horizon_ms)
            records = original[HEADER_SIZE:]
            kept, _, _, delta_max = filter_records(
                b"", records, 0, len(records), fields[12], fields[0], fields[0], False, shift
            )
            return rebuild_batch(
                self.reader.buffer,
                self.reader.at,
                records if kept is None else kept,
                fields[12],
                attributes | DELETE_HORIZON_BIT,
                filtering.horizon_ms,
                _wrap(filtering.horizon_ms + delta_max),
            )
        if filtering.now_ms < base_timestamp or offset == self._tail:
            return original
        if filtering.marker_epochs.get(fields[9]) == fields[10]:
            # The only trace of the producer's epoch, which keeps older ones out.
            return original
        self.changed = True
        return b""


def _wrap(value: int) -> int:
    """Return the value as a signed 64-bit register would hold it."""
    return ((value + (1 << 63)) & 0xFFFFFFFFFFFFFFFF) - (1 << 63)


# -- taking the place ---------------------------------------------------------------------------


def _discard(new: Segment) -> None:
    """Remove a new segment that is not used, whichever of its two names each file has by now."""
    new.let_go()
    for kind in SUFFIXES:
        path = new.path(kind).removesuffix(CLEANED).removesuffix(SWAP)
        new.pool.files.unlink(path + SWAP)
        new.pool.files.unlink(path + CLEANED)


def _swap(
    log: PartitionLog,
    group: list[Segment],
    new: Segment,
    unlink_later: Callable[[list[str]], None],
) -> Generator[Work, None, None]:
    """Put the new segment where the old ones are."""
    files, directory = new.pool.files, log.directory

    def flush_names() -> int:
        files.flush_dir(directory)
        return 0

    try:
        if not log.holds(group):
            raise Aborted
        new.move(SWAP)
        yield flush_names
        if not log.holds(group):
            raise Aborted
    except BaseException:
        _discard(new)
        raise
    # From here on a failure leaves the new segment in use under its other name: putting it in
    # place before the old names are surely gone could leave both after a crash.
    unlink_later(log.replace(group, new))
    yield flush_names
    new.move("")
    yield flush_names
