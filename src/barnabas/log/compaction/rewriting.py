"""A new segment, written from the batches of old ones that stay."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator

from barnabas.kernels import (
    SPECIAL_MASK,
    Buffer,
    check_batch,
    filter_batches,
    scan_batch,
    scan_batches,
)
from barnabas.kernels.batch_header import SIZE_MAX
from barnabas.log.batch_reader import BatchReader
from barnabas.log.compaction.survivors import Filtering, SpecialBatches
from barnabas.log.compaction.work import WORK_BYTES, Aborted, Means, Work, give_way, go_on
from barnabas.log.file_pool import FilePool, PooledFile
from barnabas.log.partition_log import PartitionLog
from barnabas.log.replacements import CLEANED
from barnabas.log.segment import LOG, Segment
from barnabas.model.errors import InvalidValueError

OUT_BYTES = 64 * 1024
"""How much is written, and entered into the indexes, at a time. The loop waits for the GIL while
batches are entered, and not while they are read, filtered and written."""


def rewrite(
    log: PartitionLog,
    group: list[Segment],
    filtering: Filtering,
    means: Means,
    is_aborted: Callable[[], bool],
    *,
    merging: bool = False,
) -> Generator[Work, None, Segment | None]:
    """Rewrite a group through the map as one segment; None if that would change nothing.

    With `merging` it has gone through the map already, and only what its segments kept as their
    ends goes.
    """
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
    tail = group[-1].end_offset() - 1
    changed_ms = new.pool.files.mtime_ms(group[-1].path(LOG))
    writing = Rewriting(new, filtering, tail, changed_ms, means.buffer_bytes)
    work = writing.merge if merging else writing.work
    pinned: list[PooledFile] = []
    try:
        if merging:
            for transaction in (each for segment in group for each in segment.aborted):
                new.add_aborted(transaction)
        for segment in group:
            # All of them before the first is read: they may be taken out of the log meanwhile.
            segment.file.pin()
            pinned.append(segment.file)
        for file, segment in zip(pinned, group, strict=True):
            writing.reader = BatchReader(file.get(), 0, segment.size_bytes, means.buffer_bytes)
            while not writing.reader.done:
                go_on(is_aborted)
                yield work
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


class Rewriting:
    """One new segment while it is written."""

    def __init__(
        self,
        new: Segment,
        filtering: Filtering,
        tail: int,
        changed_ms: int | None,
        buffer_bytes: int,
    ) -> None:
        self.reader: BatchReader
        self._plain_changed = False
        self._new = new
        self._filtering = filtering
        self._tail = tail
        self._changed_ms = changed_ms
        retained = frozenset((*filtering.last_offsets, tail))
        self._retained = array("q", sorted(retained)).tobytes()
        self._ends = retained
        self._special = SpecialBatches(filtering, tail, retained, new.add_aborted)
        self._out = bytearray(min(buffer_bytes, OUT_BYTES))
        self._size = 0  # of what waits in _out
        self._created = False

    @property
    def changed(self) -> bool:
        """Whether anything is written other than it was read."""
        return self._plain_changed or self._special.changed

    def work(self) -> int:
        """Filter some batches by the map."""
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
            self._plain_changed = self._plain_changed or changed
            if reader.done:
                break
            header = reader.whole()
            if header is None:
                give_way()
                done += reader.fill()
            elif header.is_message:
                batch = reader.take_old(packed=True)
                self._put(self._special.filter(batch, 0, scan_batch(batch)))
                self._special.changed = True  # to magic 2, at the least
            elif header.attributes & SPECIAL_MASK:
                self._put(self._special.filter(reader.buffer, reader.at, header))
                reader.at += header.size
            else:
                # It fits the reader and not what is left of the output: make room, if its count
                # of records is to be believed.
                check_batch(reader.buffer, reader.at, reader.at + header.size)
                done += self._write_out()
                room = header.size + 11 * header.count
                if len(self._out) < room:
                    self._out = bytearray(room)
        return done

    def merge(self) -> int:
        """Copy some batches unchanged, without those that are empty and no longer needed."""
        reader, done = self.reader, 0
        while not reader.done and done < WORK_BYTES:
            header = reader.whole()
            if header is None:
                give_way()
                done += reader.fill()
                continue
            end = reader.at + header.size
            check_batch(reader.buffer, reader.at, end)
            if header.count or header.last_offset in self._ends:
                self._put(memoryview(reader.buffer)[reader.at : end])
            reader.at = end
        return done

    def finish(self) -> int:
        """Flush everything that was written, under its temporary name."""
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
        if new.size_bytes + size > SIZE_MAX:
            # Batches can be larger than the messages that they are made of.
            raise InvalidValueError(
                f"{new.path(LOG)}: {new.size_bytes + size} bytes as batches of magic 2, "
                f"must be at most {SIZE_MAX}"
            )
        if not self._created:
            new.create()
            self._created = True
        with memoryview(self._out) as view, view[:size] as data:
            new.file.get().pwrite(data, new.size_bytes)
            for header in scan_batches(data):
                new.index_batch(new.size_bytes, header)
                new.size_bytes += header.size
        self._size = 0
        return size
