"""One file of a partition log with its indexes: batches from a base offset on.

`size_bytes` is the truth about how much of the `.log` file counts. An append writes at that
position and only then moves it, so a write that failed half way is invisible and is overwritten by
the next one.

The indexes of the segment live in memory while they are used. They reach their files when the
segment is finished (at a roll or at a clean stop); after a crash they are rebuilt
from the batches. A segment that is read or written at its end needs no file look-up: the positions
of its last batches are kept.
"""

from __future__ import annotations

import logging
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Protocol

from barnabas.kernels.batch_header import CONTROL_BIT, BatchHeader
from barnabas.log import transaction_index
from barnabas.log.file_pool import FilePool, PooledFile
from barnabas.log.files import Data
from barnabas.log.scan import headers
from barnabas.log.sharing import cut_shared
from barnabas.log.time_index import TimeIndex
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.model.errors import CorruptFileError, CorruptRecordError, StorageError
from barnabas.records.offset_index import OFFSET_SPAN_MAX, OffsetIndex

LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX = ".log", ".index", ".timeindex", ".txnindex"
SUFFIXES = (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX)
DELETED = ".deleted"

_logger = logging.getLogger("barnabas.logs")

TAIL_ENTRIES_MAX = 256


def segment_name(base_offset: int) -> str:
    """Return the 20 digits that name a segment's files."""
    return f"{base_offset:020d}"


def is_segment_file(name: str) -> bool:
    """Return whether a name starts with the 20 digits of an offset and a dot."""
    return len(name) > 20 and name[:20].isdigit() and name[20] == "."


def may_be_void(header: BatchHeader) -> bool:
    """Return whether a batch may hold nothing for a consumer: a marker, or records went from it."""
    return header.count <= header.last_offset_delta or header.attributes & CONTROL_BIT != 0


class Limits(Protocol):
    """How large a segment may grow, how long it may be written to, and how large its indexes."""

    segment_bytes: int
    segment_ms: int
    index_bytes: int


class Segment:
    """A stretch of the log in one file."""

    __slots__ = (
        "_aborted",
        "_first_timestamp",
        "_newest_known",
        "_offset_index",
        "_stem",
        "_suffix",
        "_tail_floor",
        "_tail_offsets",
        "_tail_positions",
        "_tail_voids",
        "_time_index",
        "_unindexed_bytes",
        "base_offset",
        "created_ms",
        "file",
        "index_interval_bytes",
        "indexes_changed",
        "jitter_ms",
        "max_timestamp",
        "max_timestamp_offset",
        "overlong",
        "pool",
        "side_files_changed",
        "size_bytes",
    )

    def __init__(
        self,
        pool: FilePool,
        directory: str,
        base_offset: int,
        *,
        created_ms: int,
        index_interval_bytes: int,
        jitter_ms: int = 0,
        suffix: str = "",
    ) -> None:
        """Describe an empty segment; `create` makes its file, `attach` takes an existing one.

        The names of its files end in `suffix` while it is not in the place where it belongs.
        """
        self.pool = pool
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.jitter_ms = jitter_ms
        self.index_interval_bytes = index_interval_bytes
        self.size_bytes = 0
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        self.overlong = False
        self.indexes_changed = True
        self.side_files_changed = False
        self._stem = f"{directory}/{segment_name(base_offset)}"
        self._suffix = suffix
        self.file: PooledFile = pool.file(self.path(LOG))
        self._newest_known = True
        self._first_timestamp: int | None = None
        self._offset_index: OffsetIndex | None = OffsetIndex(base_offset)
        self._time_index: TimeIndex | None = TimeIndex(base_offset)
        self._aborted: list[AbortedTransaction] | None = []
        self._unindexed_bytes = 0
        # Last offset and position of each recent batch; every batch above _tail_floor is in there.
        self._tail_floor = base_offset - 1
        self._tail_offsets = array("q")
        self._tail_positions = array("q")
        self._tail_voids: set[int] = set()  # positions among them that consumers may pass over

    def path(self, suffix: str) -> str:
        """Return the path of one of the segment's files."""
        return self._stem + suffix + self._suffix

    def side_files(self) -> list[str]:
        """Return the paths of the index files, there or not."""
        return [self.path(suffix) for suffix in SUFFIXES[1:]]

    def flush_side_files(self) -> None:
        """Make the index files survive a crash."""
        files = self.pool.files
        for path in self.side_files():
            files.flush_file(path)
        files.flush_dir(path.rpartition("/")[0])
        self.side_files_changed = False

    def create(self, preallocate_bytes: int = 0, *, in_new_directory: bool = False) -> None:
        """Create the empty file; leftovers of the same name are replaced."""
        files = self.pool.files
        if not in_new_directory:
            for path in self.side_files():
                files.unlink(path)
        files.write(self.file.path, b"")
        if preallocate_bytes:
            self.file.get().truncate(preallocate_bytes)
        self.overlong = preallocate_bytes > 0

    def attach(self, size_bytes: int) -> None:
        """Use an existing file of that size, whose index files are loaded when needed."""
        if not size_bytes:
            return
        self.size_bytes = size_bytes
        self.indexes_changed = False
        self._offset_index = self._time_index = self._aborted = None
        self._tail_floor = 2**63 - 1
        self._newest_known = False
        self.max_timestamp, self.max_timestamp_offset = -1, self.base_offset

    def adopt(self, pool: FilePool, directory: str | None = None) -> None:
        """Open the file through another pool from now on, and in the directory it was moved to."""
        self.file.close()
        if directory is not None:
            self._stem = f"{directory}/{segment_name(self.base_offset)}"
        self.pool.loaded_indexes.discard(self)
        self.pool = pool
        self.file = pool.file(self.path(LOG))

    # -- indexes ------------------------------------------------------------------------------

    @property
    def offset_index(self) -> OffsetIndex:
        """Offsets to positions, read from its file when it is not in memory."""
        index = self._offset_index
        if index is None:
            try:
                data = self._read_side_file(INDEX)
                index = OffsetIndex.decode(self.base_offset, data, self.size_bytes)
            except CorruptFileError as failure:
                self.rebuild_indexes(failure)
                return self.offset_index
            self._offset_index = index
            self.pool.loaded_indexes.add(self)
        return index

    @property
    def time_index(self) -> TimeIndex:
        """Timestamps to offsets, read from its file when it is not in memory."""
        index = self._time_index
        if index is None:
            try:
                index = TimeIndex.decode(self.base_offset, self._read_side_file(TIME_INDEX))
                if index:
                    self._check_time(*index.last())
            except CorruptFileError as failure:
                self.rebuild_indexes(failure)
                return self.time_index
            self._time_index = index
            self.pool.loaded_indexes.add(self)
            timestamp, offset = index.last()
            if timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = timestamp, offset
            self._newest_known = True
        return index

    def _read_side_file(self, suffix: str) -> bytes:
        data = self.pool.files.read(self.path(suffix))
        if data is None:
            raise CorruptFileError(f"{self.path(suffix)}: missing")
        return data

    def rebuild_indexes(self, failure: CorruptFileError | CorruptRecordError) -> None:
        """Rebuild offset and time index from the batches, which are authoritative.

        If a batch cannot be read either, nothing is changed.
        """
        _logger.warning(
            "segment %s: offset and time index rebuilt from its batches: %s",
            self.path(LOG),
            failure,
        )
        made = Segment(
            self.pool,
            self._stem.rpartition("/")[0],
            self.base_offset,
            created_ms=self.created_ms,
            index_interval_bytes=self.index_interval_bytes,
        )
        for position, header in self.headers():
            made.index_batch(position, header)
        self._offset_index, self._time_index = made._offset_index, made._time_index
        self._unindexed_bytes = made._unindexed_bytes
        self._first_timestamp = made._first_timestamp
        self.max_timestamp, self.max_timestamp_offset = (
            made.max_timestamp,
            made.max_timestamp_offset,
        )
        self._newest_known = self.indexes_changed = True

    def _check_time(self, timestamp: int, offset: int) -> None:
        """Raise CorruptFileError unless the time index is right to say this of a batch.

        The file has no checksum. What it says decides which records a reader starts at, and which
        segments are too old to keep.
        """
        try:
            located = self.locate(offset)
            if located is not None:
                _, header = next(self.headers(located[0]))
                if header.base_offset <= offset and header.max_timestamp == timestamp:
                    return
        except CorruptRecordError:
            return  # a batch that cannot be read says nothing against it
        entry = f"entry offset={offset} timestamp={timestamp}"
        raise CorruptFileError(f"{self.path(TIME_INDEX)}: {entry} matches no batch")

    def newest(self) -> tuple[int, int]:
        """Return (greatest timestamp, last offset of the first batch that has it); (-1, …)
        without.
        """
        if not self._newest_known:
            self.time_index  # noqa: B018  # reading it also finds the greatest timestamp
        return self.max_timestamp, self.max_timestamp_offset

    @property
    def aborted(self) -> list[AbortedTransaction]:
        """Aborted transactions that end here, read from their file when not in memory."""
        return self.load_aborted() if self._aborted is None else self._aborted

    def load_aborted(self) -> list[AbortedTransaction]:
        """Read them if necessary: before a marker is appended, as nothing may fail after it."""
        if self._aborted is None:
            data = self.pool.files.read(self.path(TRANSACTION_INDEX)) or b""
            self._aborted = transaction_index.decode(data, self.base_offset)
        return self._aborted

    def reset_indexes(self) -> None:
        """Drop all state of the batches, before they are read again."""
        self._offset_index = OffsetIndex(self.base_offset)
        self._time_index = TimeIndex(self.base_offset)
        self._aborted = []
        self._unindexed_bytes = 0
        self._first_timestamp = None
        self._newest_known = True
        self.max_timestamp, self.max_timestamp_offset = -1, self.base_offset
        self.indexes_changed = True

    def drop_indexes(self) -> None:
        """Forget indexes that can be read again from their files; others stay."""
        if self.size_bytes and not self.indexes_changed:
            self._offset_index = self._time_index = self._aborted = None

    def index_batch(self, position: int, header: BatchHeader) -> None:
        """Enter one batch of a walk over the file into the indexes."""
        last_offset = header.last_offset
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = header.max_timestamp, last_offset
        if position == 0:
            self._first_timestamp = header.max_timestamp
        if self._unindexed_bytes > self.index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
            self._unindexed_bytes = 0
        self._unindexed_bytes += header.size

    def note_scanned(self, header: BatchHeader) -> None:
        """Account for a batch after the last index entry, once, after `attach`."""
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = header.max_timestamp, header.last_offset
        self._unindexed_bytes += header.size

    def save_indexes(self) -> None:
        """Write the indexes to their files, with the final entry of the time index."""
        if not self.indexes_changed or not self.size_bytes:
            return
        files = self.pool.files
        self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
        for path in self.side_files():
            if files.links(path) > 1:  # another log's file too: it gets no new bytes
                files.unlink(path)
        files.write(self.path(INDEX), self.offset_index.encode())
        files.write(self.path(TIME_INDEX), self.time_index.encode())
        if self.aborted:
            files.write(self.path(TRANSACTION_INDEX), transaction_index.encode(self.aborted))
        else:
            files.unlink(self.path(TRANSACTION_INDEX))
        self.indexes_changed = False
        self.side_files_changed = True

    def finish(self) -> None:
        """Leave the files as a reader of a closed segment expects them (none for no batches)."""
        if self.overlong:
            self.file.get().truncate(self.size_bytes)
            self.overlong = False
        self.save_indexes()

    def forget_tail(self, last_offset: int) -> None:
        """Drop the cached positions of the last batches unless they end at this offset."""
        self._tail_floor = last_offset
        self._tail_offsets = array("q")
        self._tail_positions = array("q")
        self._tail_voids.clear()

    # -- writing ------------------------------------------------------------------------------

    def needs_roll(
        self,
        size: int,
        last_offset: int,
        max_timestamp: int,
        now_ms: int,
        limits: Limits,
    ) -> bool:
        """Return whether an append of that size must go to a new segment."""
        if self.size_bytes > limits.segment_bytes - size:
            return True
        if last_offset - self.base_offset > OFFSET_SPAN_MAX:
            return True
        if self.size_bytes:
            first = self.first_timestamp
            waited = max_timestamp - first if first >= 0 else now_ms - self.created_ms
            if waited > limits.segment_ms - self.jitter_ms:
                return True
        index_bytes = limits.index_bytes
        # The time index keeps one slot for the entry that closes the segment.
        offset_index, time_index = self._offset_index, self._time_index
        return (offset_index is not None and len(offset_index) >= index_bytes // 8) or (
            time_index is not None and len(time_index) >= index_bytes // 12 - 1
        )

    @property
    def first_timestamp(self) -> int:
        """The max timestamp of the segment's first batch, -1 without one."""
        first = self._first_timestamp
        if first is None:
            if not self.size_bytes:
                return -1
            _, header = next(headers(self.file.get(), 0, self.size_bytes))
            first = self._first_timestamp = header.max_timestamp
        return first

    def append(
        self, data: Data, last_offset: int, max_timestamp: int, max_timestamp_offset: int
    ) -> None:
        """Write one batch at the end; a StorageError leaves the segment as it was."""
        position, tail = self.size_bytes, self._tail_offsets
        assert last_offset > (tail[-1] if tail else self._tail_floor), last_offset
        try:
            self.file.get().pwrite(data, position)
        except StorageError:
            self._take_back(position)
            raise
        except BaseException:
            self.overlong = True
            raise
        size = len(data)
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = max_timestamp_offset
        if self._unindexed_bytes > self.index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
            self._unindexed_bytes = size
        else:
            self._unindexed_bytes += size
            if not position:
                self._first_timestamp = max_timestamp
        self.indexes_changed = True
        self.size_bytes = position + size
        tail.append(last_offset)
        self._tail_positions.append(position)
        if len(tail) > TAIL_ENTRIES_MAX:
            self._trim_tail()

    def _take_back(self, position: int) -> None:
        """Remove what a failed write has left, durably.

        After a smaller batch that is written next it would be bytes that are not a batch, and after
        a crash their origin would be unknown.
        """
        self.overlong = True
        with suppress(StorageError):
            file = self.file.get()
            if file.size() > position:
                file.truncate(position)
                file.flush()
            self.overlong = False

    def append_batches(self, data: Data, batches: Sequence[BatchHeader]) -> None:
        """Write several batches, whose offsets are set, with one write and one index entry."""
        position = self.size_bytes
        newest = max(batches, key=lambda header: header.max_timestamp)
        last_offset = batches[-1].last_offset
        self.append(data, last_offset, newest.max_timestamp, newest.last_offset)
        start = position
        if len(batches) > 1:
            if not position:
                self._first_timestamp = batches[0].max_timestamp
            self._tail_offsets.pop()
            self._tail_positions.pop()
            for header in batches:  # a property would show here
                self._tail_offsets.append(header.base_offset + header.last_offset_delta)
                self._tail_positions.append(position)
                position += header.size
        for header in batches:
            if may_be_void(header):
                self._tail_voids.add(start)
            start += header.size

    def assert_ends_at(self, end_offset: int) -> None:
        """Read the batch that was just appended again: it must end in front of an offset."""
        position, size = self._tail_positions[-1], self.size_bytes
        try:
            _, header = next(headers(self.file.get(), position, size))
        except StorageError:
            return  # a disk that refuses to be read does not contradict
        assert position + header.size == size, (position, header, size)
        assert header.next_offset == end_offset, (header, end_offset)

    def note_void(self) -> None:
        """Record that the batch that was just appended has nothing for a consumer."""
        self._tail_voids.add(self._tail_positions[-1])

    def _trim_tail(self) -> None:
        half = len(self._tail_offsets) // 2
        self._tail_floor = self._tail_offsets[half - 1]
        del self._tail_offsets[:half], self._tail_positions[:half]
        first = self._tail_positions[0]
        self._tail_voids = {position for position in self._tail_voids if position >= first}

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        """Remember an aborted transaction whose marker is in this segment."""
        self.aborted.append(transaction)
        self.indexes_changed = True

    # -- reading ------------------------------------------------------------------------------

    def locate(self, offset: int) -> tuple[int, int] | None:
        """Return (position, size) of the first batch that ends at or after an offset, if any."""
        found = self.find(offset)
        return None if found is None else found[:2]

    def find(self, offset: int) -> tuple[int, int, bool] | None:
        """Return what `locate` does, and whether that batch may be void for who reads from there.

        It costs no look at the file where `locate` takes none.
        """
        if offset > self._tail_floor:
            positions = self._tail_positions
            slot = bisect_left(self._tail_offsets, offset)
            if slot == len(positions):
                return None
            position = positions[slot]
            following = slot + 1
            end = positions[following] if following < len(positions) else self.size_bytes
            return position, end - position, position in self._tail_voids
        start = self.offset_index.position_of(offset)
        try:
            return self._scan_for(offset, start)
        except CorruptRecordError as failure:
            if not start:
                raise
            self.rebuild_indexes(failure)
            return self._scan_for(offset, self.offset_index.position_of(offset))

    def _scan_for(self, offset: int, start: int) -> tuple[int, int, bool] | None:
        """Scan from a position of the index, which no batch before the wanted one may follow."""
        for position, header in self.headers(start):
            if start and position == start and header.base_offset > offset:
                raise CorruptRecordError(f"offset index skips offset {offset}")
            if header.last_offset >= offset:
                inside = header.base_offset < offset
                void = not header.count or (inside and header.count <= header.last_offset_delta)
                return position, header.size, void or header.attributes & CONTROL_BIT != 0
        return None

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Yield (position, header) of the batches from a batch's position on."""
        return headers(self.file.get(), position, self.size_bytes)

    def end_offset(self) -> int:
        """Return the offset after the last batch."""
        end = self.base_offset
        for _, header in self.headers(self.offset_index.last_position()):
            end = header.next_offset
        return end

    # -- removing -----------------------------------------------------------------------------

    def truncate(self, position: int) -> int:
        """Cut the segment at a batch's position and return the offset that comes next.

        Indexes and greatest timestamp follow, from the index and the batches behind its last entry.
        """
        offset_index, time_index, aborted = self.offset_index, self.time_index, self.aborted
        if cut_shared(self.pool.files, self.path(LOG), position):
            self.adopt(self.pool)
        else:
            self.file.get().truncate(position)
        self.size_bytes = position
        self.indexes_changed = True
        offset_index.truncate(position)
        start = offset_index.last_position()
        behind = [header for _, header in self.headers(start)]
        next_offset = behind[-1].next_offset if behind else self.base_offset
        time_index.truncate(next_offset)
        self._aborted = [entry for entry in aborted if entry.last_offset < next_offset]
        self.max_timestamp, self.max_timestamp_offset = time_index.last()
        self._unindexed_bytes = 0
        for header in behind:
            self.note_scanned(header)
        self.forget_tail(next_offset - 1)
        if not position:
            self._first_timestamp = None
            for path in self.side_files():
                self.pool.files.unlink(path)
        return next_offset

    def move(self, suffix: str) -> None:
        """Let the names of the files end in another suffix; none is where a segment belongs."""
        files = self.pool.files
        # The batches last: where a failure ends this, they are where the segment looks for them,
        # and indexes that are elsewhere are rebuilt.
        for kind in (*SUFFIXES[1:], LOG):
            path = self.path(kind)
            if files.exists(path):
                files.rename(path, self._stem + kind + suffix)
        self._suffix = suffix
        self.file.path = self.path(LOG)

    def take_out(self) -> list[str]:
        """Rename the files as deleted and return their paths, to be removed later.

        A reader that has the file pinned can finish.
        """
        self.let_go()
        self.move(DELETED)
        return [self.path(kind) for kind in SUFFIXES]

    def let_go(self) -> None:
        """Close the file, at the last unpin while it is read, and forget the indexes."""
        self.file.close()
        self.pool.loaded_indexes.discard(self)

    def remove(self) -> None:
        """Delete the files; a reader that has the file pinned can finish."""
        self.let_go()
        for suffix in SUFFIXES:
            self.pool.files.unlink(self.path(suffix))
