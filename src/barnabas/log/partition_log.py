"""The log of one partition: batches in offset order, in segments, with their indexes and state.

Offsets: last_stable_offset <= high_watermark <= log_end_offset, log_start_offset <= log_end_offset,
and the recovery point (everything below it is flushed) is at most the log end. The log start is at
most the high watermark, until a follower begins again at an offset above it (`truncate_all`); the
last stable offset may lie below the log start, where retention took the start of a transaction that
is still open. An append is either in the log as a whole, or raises and leaves no trace. All methods
are called by one thread; only `Flush.run` and `Slice.read` may run on others.

Not decided here: who may write and read, when to flush, when to roll by clock, which segments are
too old, which offsets compaction has reached (`cleaned_offset` remembers it).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.config.topic import TopicOptions
from barnabas.kernels import assign_offsets
from barnabas.kernels.batch_header import CONTROL_BIT, BatchHeader
from barnabas.kernels.contract import Buffer
from barnabas.log import (
    opening,
    partition_metadata,
    removal,
    retention,
    search,
)
from barnabas.log.file_pool import FilePool
from barnabas.log.flush import Flush
from barnabas.log.leader_epochs import EPOCH_FILE, LeaderEpochs
from barnabas.log.opening import Opened
from barnabas.log.producer_snapshot import write_snapshot
from barnabas.log.producer_state import ProducerStates
from barnabas.log.replay import apply_batch, check_markers, marker_of
from barnabas.log.rolling import Rolling
from barnabas.log.scan import check_batches
from barnabas.log.search import FoundRecord
from barnabas.log.segment import Segment
from barnabas.log.segments import Segments
from barnabas.log.slice import Slice
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.log.unflushed import Unflushed
from barnabas.log.validation import NEWEST_VERSION, Origin, Rules, validate
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.records.control import ControlType

THOROUGH = False
"""Whether to reread every append and check all segments; tests and the simulation do."""


class Appended(NamedTuple):
    """Where a batch was appended; for a duplicate, where its first copy is."""

    first_offset: int
    last_offset: int
    append_time_ms: int
    log_start_offset: int
    duplicate: bool


class PartitionLog:
    """One partition on one disk."""

    def __init__(
        self,
        pool: FilePool,
        directory: str,
        topic_partition: TopicPartition,
        options: TopicOptions,
        opened: Opened,
        now_ms: int,
        random: Callable[[], float],
    ) -> None:
        found = opened.found
        self.topic_partition = topic_partition
        self.directory = directory
        self.topic_id = opened.topic_id
        self.log_start_offset = found.log_start_offset
        self.log_end_offset = found.log_end_offset
        self.recovery_point = found.recovery_point
        # What the checkpoint files on disk are known to say; below it nothing is walked again.
        self.checkpointed_recovery_point = min(found.recovery_point, opened.recovery_point)
        self.cleaned_offset = min(opened.cleaned_offset, found.log_end_offset)
        self.compacting = False
        self._removing = False
        self.high_watermark = found.log_start_offset
        self.leader_epochs: LeaderEpochs = found.leader_epochs
        self.producers: ProducerStates = found.producers
        self.last_flush_ms = now_ms
        self._pool = pool
        self._files = pool.files
        self._random = random
        self._segments = Segments(found.segments)
        self._unflushed = Unflushed(pool.files, directory, settled=opened.settled)
        self._truncations = 0
        self.converted = 0
        """Records that were appended in another form than they came; a reader may reset it."""
        self.configure(options)
        self._segments.active.jitter_ms = self._rolling.draw_jitter_ms()
        self._assert_offsets()

    @classmethod
    def open(
        cls,
        pool: FilePool,
        directory: str,
        topic_partition: TopicPartition,
        options: TopicOptions,
        now_ms: int,
        *,
        clean: bool = True,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        cleaned_offset: int = 0,
        topic_id: Uuid | None = None,
        random: Callable[[], float] = lambda: 0.0,
        repair: bool = False,
    ) -> PartitionLog:
        """Open the log in a directory, recovering it unless `clean`; create it if missing.

        Raises DamagedLogError, with nothing changed, if the files contain anything but batches and
        a torn tail; a `repair` cuts that, too, and keeps it aside. `topic_id` is for a new log; an
        existing one keeps its own, for the caller to compare.
        """
        opened = opening.find(
            pool,
            directory,
            options,
            now_ms,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            cleaned_offset=cleaned_offset,
            topic_id=topic_id,
            repair=repair,
        )
        log = cls(pool, directory, topic_partition, options, opened, now_ms, random)
        if not opened.created:
            if opened.topic_id is None and topic_id is not None:
                log.set_topic_id(topic_id)
            if pool.files.links(log._segments.active.file.path) > 1:
                log.roll(now_ms)  # a file that another log has too is not written to
        return log

    def configure(self, options: TopicOptions) -> None:
        """Apply the topic's options; takes effect with the next append."""
        self.options = options
        self._rules = Rules(options)
        self._rolling = Rolling(options, self._random)
        self._flush_messages = options.flush_messages
        self._flush_ms = options.flush_ms
        self._segments.active.index_interval_bytes = options.index_interval_bytes

    def set_topic_id(self, topic_id: Uuid) -> None:
        """Set the topic id of a log that was created before it was known."""
        path = f"{self.directory}/{partition_metadata.NAME}"
        self._files.write_atomic(path, partition_metadata.encode(topic_id))
        self.topic_id = topic_id

    # -- state --------------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        """Where read_committed stops: below it every transaction has ended."""
        unstable = self.producers.first_unstable_offset
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    @property
    def truncations(self) -> int:
        """How often the log was truncated."""
        return self._truncations

    @property
    def size_bytes(self) -> int:
        """Bytes of batches in all segments."""
        return self._segments.size_bytes

    @property
    def segment_count(self) -> int:
        """How many segments there are."""
        return len(self._segments)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments, oldest first; the last one is written to."""
        return tuple(self._segments)

    @property
    def log_start_to_checkpoint(self) -> int | None:
        """The log start, unless it follows from the segments on disk (removed ones may return)."""
        if self._removing or self.log_start_offset > self._segments[0].base_offset:
            return self.log_start_offset
        return None

    def set_high_watermark(self, offset: int) -> None:
        """Move the high watermark; it is kept between log start and log end."""
        if offset > self.log_end_offset:
            offset = self.log_end_offset
        elif offset < self.log_start_offset:
            offset = self.log_start_offset
        self.high_watermark = offset
        if self.producers.first_unstable_offset is not None:
            self.producers.advance_high_watermark(offset)

    # -- appending ----------------------------------------------------------------------------

    def append_as_leader(
        self,
        records: Buffer,
        leader_epoch: int,
        now_ms: int,
        *,
        request_version: int = NEWEST_VERSION,
        origin: Origin = "client",
    ) -> Appended:
        """Check a batch, give it the next offsets and append it.

        `records` may be changed in place and is not kept. A batch that the producer has sent
        before is not appended again. Raises RequestError with the code for the producer
        (InvalidRecords when single records are at fault) and StorageError when the disk fails;
        then nothing has changed.
        """
        rules = self._rules
        data, header = validate(records, rules, now_ms, request_version, origin)
        producers = self.producers
        if header.producer_id >= 0:
            if header.attributes & CONTROL_BIT:
                return self._append_marker(data, header, leader_epoch, now_ms)
            sent = producers.find_duplicate(header)
            if sent is not None:
                append_time = sent.timestamp if rules.append_time else -1
                start = self.log_start_offset
                return Appended(sent.first_offset, sent.last_offset, append_time, start, True)
            producers.check(header, sequenced=origin == "client")
        first_offset = self.log_end_offset
        last_offset = self._write(data, header, leader_epoch, now_ms)
        if header.producer_id >= 0:
            producers.append_data(header, first_offset)
        if rules.converted:
            self.converted += rules.converted
            rules.converted = 0
        append_time = header.max_timestamp if rules.append_time else -1
        return Appended(first_offset, last_offset, append_time, self.log_start_offset, False)

    def _append_marker(
        self, data: Buffer, header: BatchHeader, leader_epoch: int, now_ms: int
    ) -> Appended:
        """Append the end of a transaction, which its coordinator wrote."""
        marker = marker_of(data, 0, header)
        if marker is None:
            raise RequestError(
                ErrorCode.INVALID_RECORD, "control batch without a transaction marker"
            )
        self.producers.check_marker(header, marker.coordinator_epoch)
        self._segments.active.load_aborted()
        offset = self.log_end_offset
        self._write(data, header, leader_epoch, now_ms)
        self._segments.active.note_void()
        aborted = self.producers.append_marker(
            header,
            offset,
            committed=marker.type is ControlType.COMMIT,
            coordinator_epoch=marker.coordinator_epoch,
        )
        if aborted is not None:
            self._segments.active.add_aborted(aborted)
        append_time = header.max_timestamp if self._rules.append_time else -1
        return Appended(offset, offset, append_time, self.log_start_offset, False)

    def _write(self, data: Buffer, header: BatchHeader, leader_epoch: int, now_ms: int) -> int:
        """Write one batch at the log end and return its last offset."""
        first_offset = self.log_end_offset
        last_offset = first_offset + header.last_offset_delta
        max_timestamp = header.max_timestamp
        segment = self._segments.active
        if segment.needs_roll(
            len(data),
            last_offset,
            max_timestamp,
            now_ms,
            self._rolling,
        ):
            segment = self.roll(now_ms)
        if isinstance(data, bytes) or (isinstance(data, memoryview) and data.readonly):
            data = bytearray(data)
        assign_offsets(data, 0, first_offset, leader_epoch)
        segment.append(data, last_offset, max_timestamp, last_offset)
        if leader_epoch != self.leader_epochs.latest:
            self.leader_epochs.assign(leader_epoch, first_offset)
        assert last_offset >= first_offset, (first_offset, last_offset)
        self.log_end_offset = last_offset + 1
        if THOROUGH:
            self._assert_appended()
        return last_offset

    def append_as_follower(self, records: Buffer, now_ms: int) -> int:
        """Append batches as the leader has them and return how many there were.

        Checks the CRC, that offsets continue from the log end, and that markers can be read; an
        incomplete batch at the end is left out.
        """
        batches, size = check_batches(records, self.log_end_offset)
        if not batches:
            return 0
        data = memoryview(records)[:size]
        check_markers(data, batches)
        last_offset = batches[-1].last_offset
        segment = self._segments.active
        if segment.needs_roll(
            size,
            last_offset,
            max(header.max_timestamp for header in batches),
            now_ms,
            self._rolling,
        ):
            segment = self.roll(now_ms)
        segment.load_aborted()
        segment.append_batches(data, batches)
        position = 0
        for header in batches:
            self.leader_epochs.assign(header.leader_epoch, header.base_offset)
            aborted = apply_batch(self.producers, data, position, header)
            if aborted is not None:
                segment.add_aborted(aborted)
            position += header.size
        assert last_offset >= self.log_end_offset, (self.log_end_offset, last_offset)
        self.log_end_offset = last_offset + 1
        if THOROUGH:
            self._assert_appended()
        return len(batches)

    def _assert_appended(self) -> None:
        self._segments.active.assert_ends_at(self.log_end_offset)
        self._segments.assert_order()
        self._assert_offsets()

    def _assert_offsets(self) -> None:
        """Assert the invariants after each change; an append only raises the log end."""
        end = self.log_end_offset
        offsets = (self.log_start_offset, self.high_watermark, end, self.recovery_point)
        assert 0 <= self.log_start_offset <= end, offsets
        assert self.last_stable_offset <= self.high_watermark <= end, offsets
        assert self.recovery_point <= end, offsets

    def roll(self, now_ms: int) -> Segment:
        """Finish the active segment and start a new one at the log end."""
        base = self.log_end_offset
        finished = self._segments.active
        if base == finished.base_offset:
            return finished
        finished.finish()
        if self.recovery_point >= base:
            # No flush will look at this segment again, so its indexes are made to last at once.
            finished.flush_side_files()
        if len(self._segments) == 1 and self.directory in self._unflushed.directories:
            # A crash that took the first segment's name and left the second one would look like a
            # log whose beginning was deleted long ago.
            self._files.flush_dir(self.directory)
        write_snapshot(self._files, self.directory, self.producers, base)
        segment = self._create_segment(base, now_ms)
        finished.forget_tail(base - 1)
        finished.drop_indexes()
        self._segments.append(segment)
        return segment

    def _create_segment(self, base: int, now_ms: int) -> Segment:
        self._unflushed.directories.add(self.directory)
        return self._rolling.create(self._pool, self.directory, base, now_ms)

    # -- reading ------------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        max_offset: int | None = None,
        at_least_one: bool = True,
    ) -> Slice:
        """Return batches of one segment, from the one that holds `offset` (or the next) on.

        No batch that reaches `max_offset` is included. The last batch may be cut by `max_bytes`,
        the first one not if `at_least_one`. Raises OFFSET_OUT_OF_RANGE outside of log start and
        log end.
        """
        end = self.log_end_offset
        if offset < self.log_start_offset or offset > end:
            raise RequestError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset}: must be {self.log_start_offset} to {end}",
            )
        bound = None
        if max_offset is not None and max_offset < end:
            bound = end = max_offset
        if offset >= end:
            return Slice(None, 0, 0, 0, self._segments.active.base_offset)
        return self._segments.read(offset, max_bytes, bound, at_least_one)

    def upper_bound_offset(self, piece: Slice) -> int:
        """Return an offset that all batches of a slice are below, from the index alone."""
        bound = self._segments.upper_bound_offset(piece)
        return self.log_end_offset if bound is None else bound

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that a read of [from, to) may meet."""
        return self._segments.aborted_transactions(from_offset, to_offset)

    def find_timestamp(self, timestamp: int) -> FoundRecord | None:
        """Return the first record of that time or later."""
        return search.find_timestamp(list(self._segments), timestamp, self.log_start_offset)

    def find_max_timestamp(self) -> FoundRecord | None:
        """Return the first record with the greatest timestamp."""
        return search.find_max_timestamp(list(self._segments), self.log_start_offset)

    def legacy_segment_offsets(self, timestamp: int, count_max: int, now_ms: int) -> list[int]:
        """Return segment starts as ListOffsets v0 wants them, newest first."""
        return search.legacy_segment_offsets(
            list(self._segments),
            timestamp,
            count_max,
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            now_ms=now_ms,
        )

    # -- flushing -----------------------------------------------------------------------------

    def needs_flush(self, now_ms: int) -> bool:
        """Return whether the topic's policy requires a flush now."""
        unflushed = self.log_end_offset - self.recovery_point
        return unflushed > 0 and (
            unflushed >= self._flush_messages or now_ms - self.last_flush_ms >= self._flush_ms
        )

    @property
    def has_finished_segment_to_flush(self) -> bool:
        """Whether a segment was rolled that no flush has covered; worth one in the background."""
        return self._segments.active.base_offset > self.recovery_point

    def begin_flush(self, up_to: int | None = None) -> Flush | None:
        """Collect what must be flushed for the recovery point to reach an offset (the log end).

        One flush of a log at a time: the next may begin when this one has finished.
        """
        target = self.log_end_offset if up_to is None else min(up_to, self.log_end_offset)
        return self._gather(target, [])

    def _gather(self, target: int, side_files: list[str]) -> Flush | None:
        return self._unflushed.gather(
            self._segments,
            self.leader_epochs,
            target,
            recovery_point=self.recovery_point,
            generation=self._truncations,
            side_files=side_files,
        )

    def finish_flush(self, flush: Flush, now_ms: int) -> None:
        """Record the outcome of a flush that has run or failed."""
        flush.release()
        self._unflushed.settle(flush, self.leader_epochs)
        if not flush.done:
            return
        self.last_flush_ms = now_ms
        if flush.generation == self._truncations:
            self.recovery_point = max(self.recovery_point, flush.up_to)
        else:
            # The flush may have written epochs that the truncation had just taken back.
            self.leader_epochs.changed = True
        self._assert_offsets()

    def flush(self, now_ms: int, up_to: int | None = None) -> None:
        """Flush here and now."""
        flush = self.begin_flush(up_to)
        if flush is not None:
            try:
                flush.run()
            finally:
                self.finish_flush(flush, now_ms)

    # -- deleting -----------------------------------------------------------------------------

    def delete_records_before(self, offset: int) -> None:
        """Raise the log start to an offset, at most the high watermark; never lowers it."""
        if offset > self.high_watermark or offset < 0:
            raise RequestError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset}: must be 0 to {self.high_watermark}, the high watermark",
            )
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.leader_epochs.truncate_start(offset)
        self._assert_offsets()

    def expired_before(self, now_ms: int) -> int:
        """Return the offset below which retention wants no segment (see `retention`)."""
        return retention.expired_before(
            self.segments,
            self.options,
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            bound=self.high_watermark,
            now_ms=now_ms,
        )

    def expiry_cause(self) -> str:
        """Return the rule by which retention wants the oldest segment to go."""
        return retention.expiry_cause(
            self.segments, self.options, log_start_offset=self.log_start_offset
        )

    def begin_removal(self, offset: int, now_ms: int) -> int:
        """Raise the log start to a segment's base (or the log end), and return it.

        That and the recovery point must be checkpointed before `remove_before`.
        """
        if offset == self.log_end_offset:
            self.roll(now_ms)
        self.delete_records_before(offset)
        return offset

    def remove_before(self, offset: int, count_max: int = 1_000_000) -> list[str]:
        """Take out segments that end at or below an offset; return the files to unlink later.

        Only what lies below the checkpointed recovery point: otherwise a crash could leave a log
        that begins in the middle of what was lost. Call `finish_removal` once the directory is
        flushed.
        """
        offset = min(offset, self.log_start_offset, self.checkpointed_recovery_point)
        count = min(self._segments.index_of(offset), count_max)
        if not count:
            return []
        self._removing = True
        return removal.take_out_first(self._pool, self.directory, self._segments, count)

    def finish_removal(self) -> None:
        """Record that removed segments cannot reappear after a crash."""
        self._removing = False

    # -- compaction ---------------------------------------------------------------------------

    def segments_between(self, start: int, end: int) -> list[Segment]:
        """Return the segments that have offsets of [start, end)."""
        found = self._segments.starting_at(start)
        return [segment for segment in found if segment.base_offset < end]

    def holds(self, segments: Sequence[Segment]) -> bool:
        """Return whether these segments are still those of the log, and closed ones."""
        return self._segments.holds(segments)

    def replace(self, old: Sequence[Segment], new: Segment) -> list[str]:
        """Replace segments by the compacted one that was built from them.

        Returns the files to unlink later.
        """
        paths = removal.replace(self._pool, self.directory, self._segments, old, new)
        self._segments.assert_order()
        return paths

    # -- truncating ---------------------------------------------------------------------------

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Remove the batches that contain `offset` or are above it, when a follower has diverged.

        The recovery point goes down with the log end and must be checkpointed before the log goes
        on. After a StorageError the log must be opened again.
        """
        if offset >= self.log_end_offset:
            self.leader_epochs.truncate_end(self.log_end_offset)
            return
        if offset < self._segments[0].base_offset:
            self.truncate_all(offset, now_ms)
            return
        self._truncations += 1
        self.log_end_offset = removal.cut(self._files, self.directory, self._segments, offset)
        self._after_truncation(offset)

    def truncate_all(self, offset: int, now_ms: int) -> None:
        """Drop every batch, and restart the empty log at an offset."""
        self._truncations += 1
        for segment in self._segments:
            segment.remove()
        self._segments = Segments([self._create_segment(offset, now_ms)])
        self._files.flush_dir(self.directory)
        self.log_start_offset = self.log_end_offset = offset
        self.leader_epochs.clear()
        self._after_truncation(offset)

    def _after_truncation(self, offset: int) -> None:
        end = self.log_end_offset
        self.leader_epochs.truncate_end(min(offset, end))
        self.log_start_offset = min(self.log_start_offset, end)
        self.high_watermark = min(self.high_watermark, end)
        self.recovery_point = min(self.recovery_point, end)
        self.checkpointed_recovery_point = min(self.checkpointed_recovery_point, end)
        self.cleaned_offset = min(self.cleaned_offset, end)
        removal.rewind_producers(self._files, self.directory, self.producers, self._segments, end)
        self._assert_offsets()
        self._write_epochs()

    def _write_epochs(self) -> None:
        if self.leader_epochs.changed:
            path = f"{self.directory}/{EPOCH_FILE}"
            self._files.write_atomic(path, self.leader_epochs.encode())
            self.leader_epochs.changed = False

    # -- closing ------------------------------------------------------------------------------

    def begin_close(self) -> Flush | None:
        """Write what the next clean start expects, and collect what must still be flushed."""
        end = self.log_end_offset
        side_files = self._unflushed.gather_side_files(self._segments, self.producers, end)
        return self._gather(end, side_files)

    def close(self, now_ms: int) -> None:
        """Leave everything on disk as the next clean start expects it, and close the files."""
        flush = self.begin_close()
        if flush is not None:
            try:
                flush.run()
            finally:
                self.finish_flush(flush, now_ms)
        self.release()

    def move_to(self, directory: str, pool: FilePool) -> None:
        """Rename the directory and continue in it, with files of another pool; not while it is
        flushed.
        """
        self._files.rename(self.directory, directory)
        self.directory = directory
        self._unflushed.move_to(directory)
        self._pool = pool
        for segment in self._segments:
            segment.adopt(pool, directory)

    def mark_deleted(self, directory: str) -> None:
        """Rename the directory and close the files; slices in use can still be read."""
        self._files.rename(self.directory, directory)
        self.directory = directory
        self.release()

    def release(self) -> None:
        """Close the files without writing anything."""
        for segment in self._segments:
            segment.file.close()
