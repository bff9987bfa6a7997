"""Moves a log to another directory while it is written to.

A second log, in `<topic>-<partition>.<32 hex>-future` of the target directory, gets the batches of
the first one, piece by piece, until it has caught up; then the two are swapped. Until then only the
source is read and written by others, so a failed move costs nothing but the copy. The caller drives
it: `copy` may run on another thread, everything else on the one that appends to the source.

What a crash leaves: before `finish`, the source and a future copy, which the next start removes
(the move must be asked for again). Between `finish` and `retire`, two logs of the same name, each
with everything that was ever flushed; the next start keeps the longer one.
"""

from __future__ import annotations

from barnabas.log.directory import FUTURE, LogDirectory
from barnabas.log.file_pool import FilePool
from barnabas.log.leader_epochs import LeaderEpochs
from barnabas.log.partition_log import PartitionLog
from barnabas.log.producer_snapshot import restore_snapshot, snapshot_offsets
from barnabas.log.scan import first_offset
from barnabas.log.slice import Slice

PIECE_BYTES = 1024 * 1024


class Relocation:
    """One log on its way to another directory of the same broker."""

    def __init__(
        self,
        source: LogDirectory,
        target: LogDirectory,
        log: PartitionLog,
        unique: str,
        now_ms: int,
    ) -> None:
        """Start the copy of a log of `source`; `unique` are 32 hex digits."""
        assert source is not target
        self.source = source
        self.target = target
        self._log = log
        self._unique = unique
        self._truncations = log.truncations
        self._cleaned_offset = log.cleaned_offset
        # A pool of its own: the copy is written on another thread.
        self._pool = FilePool(target.pool.files, limit=4)
        self.future = PartitionLog.open(
            self._pool,
            target.path_beside(log.topic_partition, unique, FUTURE),
            log.topic_partition,
            log.options,
            now_ms,
            log_start_offset=_first_batch_offset(log),
            topic_id=log.topic_id,
        )
        self._seed_producers()

    def _seed_producers(self) -> None:
        """Copy the state of producers whose batches were already deleted."""
        files, directory = self.source.pool.files, self._log.directory
        offsets = snapshot_offsets(files, directory)
        start = self.future.log_start_offset
        restore_snapshot(files, directory, self.future.producers, offsets, start)

    @property
    def lag(self) -> int:
        """How many offsets the copy is behind."""
        return max(self._log.log_end_offset - self.future.log_end_offset, 0)

    @property
    def size_bytes(self) -> int:
        """How much is copied."""
        return self.future.size_bytes

    def next_piece(self, now_ms: int) -> Slice | None:
        """Return what is to be copied next, None when the copy has caught up."""
        log, future = self._log, self.future
        passed = False
        if future.log_end_offset < log.log_start_offset:
            passed = future.log_end_offset < _first_batch_offset(log)
        if log.truncations != self._truncations or passed:
            # What was copied is no longer in the source: begin again at its start.
            self._truncations = log.truncations
            future.truncate_all(_first_batch_offset(log), now_ms)
            future.producers.restore([])
            self._seed_producers()
        piece = log.read(max(future.log_end_offset, log.log_start_offset), PIECE_BYTES)
        if not piece.size:
            piece.release()
            return None
        return piece

    def copy(self, data: bytes, now_ms: int) -> None:
        """Append what was read of a piece to the copy."""
        self.future.append_as_follower(data, now_ms)

    @property
    def is_safe(self) -> bool:
        """Whether all that is flushed of the source is flushed in the copy."""
        return self.future.recovery_point >= self._log.recovery_point

    def finish(self, now_ms: int) -> PartitionLog:
        """Copy the rest and put the copy in the log's place; `retire` must follow at once.

        Runs between two appends, while the source is not compacted. The rest should be small, and
        what is flushed should be safe.
        """
        while (piece := self.next_piece(now_ms)) is not None:
            try:
                self.copy(piece.read(), now_ms)
            finally:
                piece.release()
        log, future = self._log, self.future
        if not self.is_safe:
            future.flush(now_ms)
        files, key = self._pool.files, log.topic_partition
        future.leader_epochs = LeaderEpochs.decode(log.leader_epochs.encode(), log.directory)
        future.leader_epochs.changed = True
        future.producers = log.producers
        future.configure(log.options)
        future.cleaned_offset = min(self._cleaned_offset, future.log_end_offset)
        future.log_start_offset = log.log_start_offset
        future.set_high_watermark(log.high_watermark)
        future.move_to(self.target.path_of(key), self.target.pool)
        files.flush_dir(self.target.path)
        self.target.logs[key] = future
        return future

    def retire(self) -> str:
        """Mark the old log as deleted, and return its new path, for removal."""
        path = self.source.delete_log(self._log.topic_partition, self._unique)
        self._pool.files.flush_dir(self.source.path)
        return path

    def abandon(self) -> str:
        """Abandon the move; return the path of the copy, for removal."""
        return self.target.give_up(self.future, self._unique)


def _first_batch_offset(log: PartitionLog) -> int:
    """Return the base offset of the first batch that is not deleted; the log end without one.

    At most the log start: where compaction took the first batches, readers may still ask for it.
    """
    piece = log.read(log.log_start_offset, 1)
    try:
        data = piece.read()
    finally:
        piece.release()
    first = first_offset(data) if data else log.log_end_offset
    return min(first, log.log_start_offset)
