"""Plans the micro-batches of a stream: where the first one starts, and where the next one ends.

It does no IO: it is given a `TopicSnapshot` of the cluster and the time, and returns an offset or
raises. Lost offsets (a log that starts after the stream's offset, or ends before it, or a topic
that was recreated) are reported partition by partition, or skipped with `failOnDataLoss=false`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition
from barnabas.spark.errors import CheckpointError, DataLossError, LostOffsets
from barnabas.spark.offset_ranges import OffsetRange
from barnabas.spark.options import SourceOptions
from barnabas.spark.rate_limit import TriggerDelay, limit_rate
from barnabas.spark.source_offset import SourceOffset
from barnabas.spark.topic_selection import SelectedTopic

_TASK_RECORDS = 1000
"""The minimum number of records per task, as a task costs tens of milliseconds."""


@dataclass(frozen=True, slots=True)
class TopicSnapshot:
    """The selected topics at one time, and the start and end offsets of their partitions."""

    topics: Mapping[str, SelectedTopic]
    earliest: Mapping[TopicPartition, int]
    latest: Mapping[TopicPartition, int]


class MicroBatchPlanner:
    """Plans the micro-batches of one stream."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._delay = TriggerDelay(options.offsets_per_trigger_min, options.trigger_delay_ms_max)
        self._target: Mapping[TopicPartition, int] | None = None

    def stop_at(self, snapshot: TopicSnapshot) -> None:
        """Stop at the end offsets of a snapshot (AvailableNow), without delaying batches."""
        self._target = dict(snapshot.latest)
        self._delay = TriggerDelay(None, 0)

    @property
    def ends(self) -> bool:
        """Whether the run ends at fixed offsets."""
        return self._target is not None

    def first_start(
        self, snapshot: TopicSnapshot, starts: Mapping[TopicPartition, int]
    ) -> SourceOffset:
        """Return where the first batch starts, given the offsets of the options."""
        self._options.selection.check(snapshot.topics)
        losses = _out_of_range(starts, snapshot, {})
        if losses and self._options.fail_on_data_loss:
            raise InvalidValueError(
                f"{self._options.starting.option}: missing "
                f"{'; '.join(map(str, losses))}; failOnDataLoss=false starts at existing offsets"
            )
        tasks = self._options.tasks(len(starts))
        return SourceOffset(_clamp(starts, snapshot), _topic_ids(snapshot), tasks)

    def next_end(
        self,
        start: SourceOffset,
        snapshot: TopicSnapshot,
        limit: int | None,
        now_ms: float,
        *,
        first: bool = False,
    ) -> SourceOffset | None:
        """Return where the next batch ends; None while there is nothing to read.

        With `first`, `start` is not in the checkpoint yet, and becomes `begun` of the result.
        """
        begun = dict(start.offsets) if first else self._check(start, snapshot)
        current = {
            partition: offset
            for partition, offset in {**start.offsets, **begun}.items()
            if partition in snapshot.latest
        }
        ends = self._ends(snapshot)
        backlog = {
            partition: max(0, ends.get(partition, offset) - offset)
            for partition, offset in current.items()
        }
        pending = sum(backlog.values())
        if not self._delay.is_due(pending, now_ms):
            return None
        if not pending and not begun and set(current) == set(start.offsets):
            return None
        taken = backlog if limit is None else limit_rate(backlog, limit)
        return SourceOffset(
            {partition: offset + taken.get(partition, 0) for partition, offset in current.items()},
            _topic_ids(snapshot),
            self._tasks(current, sum(taken.values())),
            begun,
            self._options.records_per_partition_max,
        )

    def drop_replaced_topics(
        self, ranges: Iterable[OffsetRange], end: SourceOffset, snapshot: TopicSnapshot
    ) -> list[OffsetRange]:
        """Return the ranges of a batch whose topics are those that it was planned for.

        A topic may have been deleted or recreated before a batch is replayed; its offsets would
        be those of other records.
        """
        kept, losses = [], []
        for each in ranges:
            why = _changed(each.topic, snapshot, end.topic_ids)
            if why is None:
                kept.append(each)
            elif len(each):
                losses.append(LostOffsets(each.topic_partition, each.start, each.until, why))
        if losses and self._options.fail_on_data_loss:
            raise DataLossError(losses)
        return kept

    def _ends(self, snapshot: TopicSnapshot) -> Mapping[TopicPartition, int]:
        if self._target is None:
            return snapshot.latest
        return {
            partition: min(snapshot.latest[partition], end)
            for partition, end in self._target.items()
            if partition in snapshot.latest
        }

    def _check(self, start: SourceOffset, snapshot: TopicSnapshot) -> dict[TopicPartition, int]:
        """Return the first offsets of new partitions, and of those that lost records."""
        options = self._options
        unselected = {name for name in start.topic_ids if not options.selection.covers(name)}
        if unselected and unselected == set(start.topic_ids):
            raise CheckpointError(
                f"the checkpoint is for topic {', '.join(sorted(unselected))}, the query reads "
                f"{options.selection.text}: use another checkpointLocation"
            )
        replaced = {name for name in start.topic_ids if _changed(name, snapshot, start.topic_ids)}
        losses = [
            LostOffsets(
                each.partition, each.first, None, f"{options.selection.text} does not name it"
            )
            if each.partition.topic in unselected
            else each
            for each in _out_of_range(start.offsets, snapshot, start.topic_ids)
        ]
        if losses and options.fail_on_data_loss:
            raise DataLossError(losses)
        begun = {
            partition: first
            for partition, first in snapshot.earliest.items()
            if partition not in start.offsets or partition.topic in replaced
        }
        for loss in losses:
            if loss.partition in snapshot.earliest and loss.partition not in begun:
                first, end = snapshot.earliest[loss.partition], snapshot.latest[loss.partition]
                begun[loss.partition] = min(max(start.offsets[loss.partition], first), end)
        return begun

    def _tasks(self, partitions: Mapping[TopicPartition, int], records: int) -> int:
        """Return the number of tasks of a batch: few records do not justify several."""
        if self._options.partitions_min is not None:
            return self._options.tasks(len(partitions))
        return min(self._options.tasks(len(partitions)), max(1, -(-records // _TASK_RECORDS)))


def _out_of_range(
    offsets: Mapping[TopicPartition, int], snapshot: TopicSnapshot, topic_ids: Mapping[str, str]
) -> list[LostOffsets]:
    """Return which of the next offsets are lost."""
    losses = []
    for partition, offset in sorted(offsets.items()):
        why = _changed(partition.topic, snapshot, topic_ids)
        if why is not None:
            losses.append(LostOffsets(partition, offset, None, why))
        elif partition not in snapshot.latest:
            losses.append(LostOffsets(partition, offset, None, "the partition no longer exists"))
        elif offset < snapshot.earliest[partition]:
            first = snapshot.earliest[partition]
            losses.append(LostOffsets(partition, offset, first, f"the log starts at {first}"))
        elif offset > snapshot.latest[partition]:
            end = snapshot.latest[partition]
            losses.append(LostOffsets(partition, end, offset, f"the log ends at {end}"))
    return losses


def _changed(name: str, snapshot: TopicSnapshot, topic_ids: Mapping[str, str]) -> str | None:
    """Return what happened to a topic since its id was stored; None: nothing."""
    topic = snapshot.topics.get(name)
    if topic is None:
        return "the topic no longer exists"
    known = topic_ids.get(name, "")
    if known and topic.topic_id not in ("", known):
        return f"the topic was recreated: its id was {known}, it is now {topic.topic_id}"
    return None


def _clamp(
    offsets: Mapping[TopicPartition, int], snapshot: TopicSnapshot
) -> dict[TopicPartition, int]:
    return {
        partition: min(max(offset, snapshot.earliest[partition]), snapshot.latest[partition])
        for partition, offset in offsets.items()
    }


def _topic_ids(snapshot: TopicSnapshot) -> dict[str, str]:
    return {name: topic.topic_id for name, topic in snapshot.topics.items()}
