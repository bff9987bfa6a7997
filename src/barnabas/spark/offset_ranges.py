"""Which offsets a task reads: a pure function of the offsets and of numbers fixed beforehand.

A replay plans the same tasks from the same stored offsets, whatever the cluster looks like by
then: an exactly-once sink depends on it. Topic partitions are combined into about as many tasks as
there are cores, because a task costs tens of milliseconds; large ones are split where more tasks
are wanted than there are partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise

from barnabas.model.ids import TopicPartition


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """Offsets `start` to `until - 1` of a partition."""

    topic: str
    partition: int
    start: int
    until: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition, as the clients name it."""
        return TopicPartition(self.topic, self.partition)

    def __len__(self) -> int:
        return self.until - self.start


def plan_tasks(
    ranges: Iterable[OffsetRange], tasks: int, records_max: int | None = None
) -> list[tuple[OffsetRange, ...]]:
    """Return what each of at most `tasks` tasks reads.

    With `records_max` no task reads more offsets than that, and there may be more tasks.
    """
    whole = sorted(each for each in ranges if len(each) > 0)
    pieces = _pieces(whole, tasks)
    if records_max is not None:
        pieces = [part for each in pieces for part in _split(each, -(-len(each) // records_max))]
    # The largest first, each to the task that has the least so far; ties by number, so that the
    # result is deterministic.
    loads = [(0, number) for number in range(min(tasks, len(pieces)))]
    heapify(loads)
    chosen: list[list[OffsetRange]] = [[] for _ in loads]
    for piece in sorted(pieces, key=lambda each: (-len(each), each)):
        load, number = loads[0]
        if records_max is not None and load + len(piece) > records_max:
            chosen.append([piece])
            heappush(loads, (len(piece), len(chosen) - 1))
            continue
        heappop(loads)
        chosen[number].append(piece)
        heappush(loads, (load + len(piece), number))
    return [tuple(_merge(sorted(each))) for each in chosen if each]


def _pieces(whole: list[OffsetRange], tasks: int) -> list[OffsetRange]:
    """Split ranges into as many pieces as tasks, in proportion to their sizes."""
    if len(whole) >= tasks:
        return whole
    total = sum(map(len, whole))
    pieces: list[OffsetRange] = []
    for each in whole:
        pieces += _split(each, max(1, round(tasks * len(each) / total)))
    return pieces


def _split(whole: OffsetRange, count: int) -> list[OffsetRange]:
    count = max(1, min(count, len(whole)))
    edges = [whole.start + len(whole) * number // count for number in range(count + 1)]
    return [
        OffsetRange(whole.topic, whole.partition, start, until) for start, until in pairwise(edges)
    ]


def _merge(pieces: list[OffsetRange]) -> list[OffsetRange]:
    """Merge adjacent pieces."""
    merged: list[OffsetRange] = []
    for piece in pieces:
        last = merged[-1] if merged else None
        if (
            last is not None
            and last.topic_partition == piece.topic_partition
            and last.until == piece.start
        ):
            merged[-1] = OffsetRange(last.topic, last.partition, last.start, piece.until)
        else:
            merged.append(piece)
    return merged
