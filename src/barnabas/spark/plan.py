"""Which offsets a task reads: a pure function of the offsets and of numbers fixed beforehand.

A replay plans the same tasks from the same stored offsets, whatever the cluster looks like by
then: an exactly-once sink depends on it. Partitions of Kafka are put together into about as many
tasks as there are cores, because a task costs tens of milliseconds; large ones are cut where more
tasks are asked for than there are partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise

from barnabas.model.ids import TopicPartition


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """Offsets `start` to `until - 1` of a partition."""

    topic: str
    partition: int
    start: int
    until: int

    @property
    def place(self) -> TopicPartition:
        """The partition as the clients name it."""
        return TopicPartition(self.topic, self.partition)

    def __len__(self) -> int:
        return self.until - self.start


def plan(
    ranges: Iterable[Range], tasks: int, records_max: int | None = None
) -> list[tuple[Range, ...]]:
    """Return what each task reads: `tasks` of them, fewer where there is not that much to read.

    With `records_max` no task reads more offsets than that, and there may be more tasks.
    """
    whole = sorted(each for each in ranges if len(each) > 0)
    pieces = _pieces(whole, tasks)
    if records_max is not None:
        pieces = [part for each in pieces for part in _cut(each, -(-len(each) // records_max))]
    # The largest first, each to the task that has least so far; ties by number, so that the
    # outcome is one and the same.
    loads = [(0, number) for number in range(min(tasks, len(pieces)))]
    heapify(loads)
    chosen: list[list[Range]] = [[] for _ in loads]
    for piece in sorted(pieces, key=lambda each: (-len(each), each)):
        load, number = loads[0]
        if records_max is not None and load + len(piece) > records_max:
            chosen.append([piece])
            heappush(loads, (len(piece), len(chosen) - 1))
            continue
        heappop(loads)
        chosen[number].append(piece)
        heappush(loads, (load + len(piece), number))
    return [tuple(_joined(sorted(each))) for each in chosen if each]


def _pieces(whole: list[Range], tasks: int) -> list[Range]:
    """Cut ranges so that there are as many pieces as tasks, in proportion to their sizes."""
    if len(whole) >= tasks:
        return whole
    total = sum(map(len, whole))
    pieces: list[Range] = []
    for each in whole:
        pieces += _cut(each, max(1, round(tasks * len(each) / total)))
    return pieces


def _cut(whole: Range, count: int) -> list[Range]:
    count = max(1, min(count, len(whole)))
    edges = [whole.start + len(whole) * number // count for number in range(count + 1)]
    return [Range(whole.topic, whole.partition, start, until) for start, until in pairwise(edges)]


def _joined(pieces: list[Range]) -> list[Range]:
    """Join pieces that follow each other."""
    joined: list[Range] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if last is not None and last.place == piece.place and last.until == piece.start:
            joined[-1] = Range(last.topic, last.partition, last.start, piece.until)
        else:
            joined.append(piece)
    return joined
