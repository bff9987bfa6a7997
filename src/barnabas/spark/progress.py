"""The progress of a stream: from where it is and what the cluster has to where it goes next.

Plain: it is given a `View` of the cluster and the time, and answers with positions or an error.
What is gone (a log that begins later than we are, one that ends earlier, a topic that was created
again) is reported offset by offset, or with `failOnDataLoss=false` passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition
from barnabas.spark.admission import Patience, share
from barnabas.spark.choice import TopicNow
from barnabas.spark.errors import CheckpointError, DataLossError, Loss
from barnabas.spark.options import SourceOptions
from barnabas.spark.plan import Range
from barnabas.spark.positions import Positions

_TASK_RECORDS = 1000
"""Fewer than this for each task, and there are fewer tasks: one costs tens of milliseconds."""


@dataclass(frozen=True, slots=True)
class View:
    """The chosen topics at one moment, and the ends of their partitions' logs."""

    topics: Mapping[str, TopicNow]
    earliest: Mapping[TopicPartition, int]
    latest: Mapping[TopicPartition, int]


class Progress:
    """Decides what the next batch of one stream reads."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._patience = Patience(options.offsets_per_trigger_min, options.trigger_delay_ms_max)
        self._target: Mapping[TopicPartition, int] | None = None

    def stop_at(self, view: View) -> None:
        """Read no further than the ends of now (AvailableNow), and wait for nothing."""
        self._target = dict(view.latest)
        self._patience = Patience(None, 0)

    @property
    def ends(self) -> bool:
        """Whether the run ends by itself: there is nothing to wait for."""
        return self._target is not None

    def begin(self, view: View, starts: Mapping[TopicPartition, int]) -> Positions:
        """Return where the first batch begins, given what the options resolved to."""
        self._options.choice.check(view.topics)
        losses = _out_of_range(starts, view, {})
        if losses and self._options.fails_on_loss:
            raise InvalidValueError(
                f"{self._options.starting.option}: there are no "
                f"{'; '.join(map(str, losses))}; failOnDataLoss=false begins at what there is"
            )
        tasks = self._options.tasks(len(starts))
        return Positions(_clamped(starts, view), _ids(view), tasks)

    def advance(
        self, start: Positions, view: View, limit: int | None, now_ms: float, *, first: bool = False
    ) -> Positions | None:
        """Return where the next batch ends; None while there is nothing to read.

        With `first`, `start` is not stored anywhere yet, and becomes `begun` of the answer.
        """
        begun = dict(start.offsets) if first else self._check(start, view)
        current = {
            place: offset
            for place, offset in {**start.offsets, **begun}.items()
            if place in view.latest
        }
        ends = self._ends(view)
        backlog = {
            place: max(0, ends.get(place, offset) - offset) for place, offset in current.items()
        }
        waiting = sum(backlog.values())
        if not self._patience.is_enough(waiting, now_ms):
            return None
        if not waiting and not begun and set(current) == set(start.offsets):
            return None
        taken = backlog if limit is None else share(backlog, limit)
        return Positions(
            {place: offset + taken.get(place, 0) for place, offset in current.items()},
            _ids(view),
            self._tasks(current, sum(taken.values())),
            begun,
            self._options.records_per_partition_max,
        )

    def still_there(self, ranges: Iterable[Range], end: Positions, view: View) -> list[Range]:
        """Return the ranges of a batch whose topics are those that it was planned for.

        A batch that is replayed may find that a topic was deleted or created again meanwhile, and
        would read offsets that have nothing to do with those of then.
        """
        kept, losses = [], []
        for each in ranges:
            why = _changed(each.topic, view, end.topic_ids)
            if why is None:
                kept.append(each)
            elif len(each):
                losses.append(Loss(each.place, each.start, each.until, why))
        if losses and self._options.fails_on_loss:
            raise DataLossError(losses)
        return kept

    def _ends(self, view: View) -> Mapping[TopicPartition, int]:
        if self._target is None:
            return view.latest
        return {
            place: min(view.latest[place], end)
            for place, end in self._target.items()
            if place in view.latest
        }

    def _check(self, start: Positions, view: View) -> dict[TopicPartition, int]:
        """Return where partitions begin anew: new ones, and those that lost records."""
        options = self._options
        strangers = {name for name in start.topic_ids if not options.choice.covers(name)}
        if strangers and strangers == set(start.topic_ids):
            raise CheckpointError(
                f"the checkpoint is of topic {', '.join(sorted(strangers))}, the query reads "
                f"{options.choice.text}: use another checkpointLocation"
            )
        anew = {name for name in start.topic_ids if _changed(name, view, start.topic_ids)}
        losses = [
            Loss(each.partition, each.first, None, f"{options.choice.text} does not name it")
            if each.partition.topic in strangers
            else each
            for each in _out_of_range(start.offsets, view, start.topic_ids)
        ]
        if losses and options.fails_on_loss:
            raise DataLossError(losses)
        begun = {
            place: first
            for place, first in view.earliest.items()
            if place not in start.offsets or place.topic in anew
        }
        for loss in losses:
            if loss.partition in view.earliest and loss.partition not in begun:
                first, end = view.earliest[loss.partition], view.latest[loss.partition]
                begun[loss.partition] = min(max(start.offsets[loss.partition], first), end)
        return begun

    def _tasks(self, places: Mapping[TopicPartition, int], records: int) -> int:
        """Return for how many tasks a batch is planned: few records are not worth several."""
        if self._options.partitions_min is not None:
            return self._options.tasks(len(places))
        return min(self._options.tasks(len(places)), max(1, -(-records // _TASK_RECORDS)))


def _out_of_range(
    offsets: Mapping[TopicPartition, int], view: View, topic_ids: Mapping[str, str]
) -> list[Loss]:
    """Return what is not there of the offsets that are to be read next."""
    losses = []
    for place, offset in sorted(offsets.items()):
        why = _changed(place.topic, view, topic_ids)
        if why is not None:
            losses.append(Loss(place, offset, None, why))
        elif place not in view.latest:
            losses.append(Loss(place, offset, None, "the partition is gone"))
        elif offset < view.earliest[place]:
            first = view.earliest[place]
            losses.append(Loss(place, offset, first, f"the log begins at {first}"))
        elif offset > view.latest[place]:
            end = view.latest[place]
            losses.append(Loss(place, end, offset, f"the log ends at {end}"))
    return losses


def _changed(name: str, view: View, topic_ids: Mapping[str, str]) -> str | None:
    """Tell what happened to a topic since its id was noted; None: nothing."""
    topic = view.topics.get(name)
    if topic is None:
        return "the topic is gone"
    known = topic_ids.get(name, "")
    if known and topic.topic_id not in ("", known):
        return (
            f"the topic was deleted and created again: its id was {known}, it is now "
            f"{topic.topic_id}"
        )
    return None


def _clamped(offsets: Mapping[TopicPartition, int], view: View) -> dict[TopicPartition, int]:
    return {
        place: min(max(offset, view.earliest[place]), view.latest[place])
        for place, offset in offsets.items()
    }


def _ids(view: View) -> dict[str, str]:
    return {name: topic.topic_id for name, topic in view.topics.items()}
