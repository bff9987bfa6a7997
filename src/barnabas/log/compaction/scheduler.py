"""Which log is compacted next, and which logs are paused.

The dirtiest log comes first: the one with the greatest share of bytes that were never compacted.
A log waits until that share passes `min.cleanable.dirty.ratio`, unless one of its records has
waited longer than `max.compaction.lag.ms`; the records of the last `min.compaction.lag.ms` are
not touched. A log whose compaction failed is not tried again until the broker restarts.

Plain state: a partition is in progress, aborted (asked to stop, not stopped yet) or paused a number
of times. A cleaner checks `is_aborted` between two steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto
from itertools import pairwise
from typing import NamedTuple

from barnabas.log.partition_log import PartitionLog
from barnabas.log.retention import newest_ms
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition

NEVER_MS = 2**63 - 1


class Cleanable(NamedTuple):
    """A range of a log that may be compacted now."""

    log: PartitionLog
    first_dirty: int
    end: int
    dirty_ratio: float
    delay_ms: int  # how much longer than max.compaction.lag.ms its oldest dirty record has waited

    @property
    def wanted(self) -> bool:
        """Whether it is dirty enough, or has waited too long."""
        return self.delay_ms > 0 or self.dirty_ratio > self.log.options.min_cleanable_dirty_ratio


def examine(log: PartitionLog, now_ms: int) -> Cleanable | None:
    """Return the range of a log that could be compacted now, None for nothing."""
    options = log.options
    if not options.compact:
        return None
    segments = log.segments
    first_dirty = log.cleaned_offset
    if not log.log_start_offset <= first_dirty <= log.log_end_offset:
        first_dirty = log.log_start_offset
    # Below the checkpointed recovery point: what is walked after a crash must have no gaps.
    bound = min(log.last_stable_offset, log.checkpointed_recovery_point, segments[-1].base_offset)
    end = segments[0].base_offset
    dirty_bytes = clean_bytes = 0
    delay_ms = 0
    for segment, following in pairwise(segments):
        if following.base_offset > bound:
            break
        if following.base_offset <= first_dirty:
            clean_bytes += segment.size_bytes
        else:
            lag_ms = options.min_compaction_lag_ms
            if lag_ms and newest_ms(segment) > now_ms - lag_ms:
                break
            dirty_bytes += segment.size_bytes
            if options.max_compaction_lag_ms != NEVER_MS and segment.first_timestamp >= 0:
                waited = now_ms - segment.first_timestamp
                delay_ms = max(delay_ms, waited - options.max_compaction_lag_ms)
        end = following.base_offset
    if not dirty_bytes or end <= first_dirty:
        return None
    ratio = dirty_bytes / (dirty_bytes + clean_bytes)
    return Cleanable(log, first_dirty, end, ratio, delay_ms)


class _State(Enum):
    IN_PROGRESS = auto()
    ABORTED = auto()


class CompactionScheduler:
    """Chooses logs, at most one cleaner for each."""

    def __init__(self) -> None:
        self.uncleanable: dict[TopicPartition, str] = {}
        # What the last choice saw, for metrics.
        self.chosen_ms: int | None = None
        self.dirty_ratio_max = 0.0
        self._states: dict[TopicPartition, _State] = {}
        self._pauses: dict[TopicPartition, int] = {}

    def begin_next(
        self,
        logs: Iterable[PartitionLog],
        now_ms: int,
        on_failure: Callable[[TopicPartition, BarnabasError], None] = lambda *_: None,
    ) -> Cleanable | None:
        """Choose the dirtiest log that is neither in progress nor paused, and mark it.

        A log that cannot be examined is never chosen again, and reported to `on_failure`.
        """
        best: Cleanable | None = None
        self.chosen_ms, self.dirty_ratio_max = now_ms, 0.0
        for log in logs:
            partition = log.topic_partition
            if (
                partition in self._states
                or partition in self._pauses
                or partition in self.uncleanable
            ):
                continue
            try:
                found = examine(log, now_ms)
            except BarnabasError as failure:
                self.uncleanable[partition] = str(failure)
                on_failure(partition, failure)
                continue
            if found is None:
                continue
            self.dirty_ratio_max = max(self.dirty_ratio_max, found.dirty_ratio)
            if not found.wanted:
                continue
            if best is None or found.dirty_ratio > best.dirty_ratio:
                best = found
        if best is not None:
            self._states[best.log.topic_partition] = _State.IN_PROGRESS
            best.log.compacting = True
        return best

    def is_aborted(self, partition: TopicPartition) -> bool:
        """Return whether the compaction of the partition must stop."""
        return self._states.get(partition) is _State.ABORTED

    def finish(self, log: PartitionLog, failure: str | None = None) -> None:
        """Record that the compaction of a log ended; after a failure it is not chosen again."""
        partition = log.topic_partition
        aborted = self._states.pop(partition) is _State.ABORTED
        log.compacting = False
        if failure is not None and not aborted:
            self.uncleanable[partition] = failure

    def pause(self, partition: TopicPartition) -> None:
        """Stop compacting the partition, and do not choose it until `resume`."""
        self._pauses[partition] = self._pauses.get(partition, 0) + 1
        if partition in self._states:
            self._states[partition] = _State.ABORTED

    def resume(self, partition: TopicPartition) -> None:
        """Undo one `pause`."""
        count = self._pauses[partition] - 1
        if count:
            self._pauses[partition] = count
        else:
            del self._pauses[partition]

    def forget(self, partition: TopicPartition) -> None:
        """Drop what is known of a partition whose log was deleted."""
        self.uncleanable.pop(partition, None)
