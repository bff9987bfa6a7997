"""When the records of a partition were appended, from samples of its end: lag in seconds.

For each partition there is a ring of samples (time, end), about an hour long. The lag of a consumer
is the time since the end passed its committed offset, interpolated between two samples.

A ring is bounded. Its newest samples are all kept, older ones the thinner the older they are, so
that a lag is exact to a `PRECISION`-th of itself, or to the interval of the samples. Of a time
without appends only the beginning and the end are kept.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Collection

from barnabas.model.ids import TopicPartition

HOUR_MS = 3_600_000
PRECISION = 32
SAMPLES_MAX = 512
"""A ring with one sample per second has fewer than 400 when it has been thinned."""
RINGS_MAX = 10_000


class LagClock:
    """The rings of all partitions that consumers are measured on; time is passed in."""

    def __init__(self) -> None:
        self._rings: dict[TopicPartition, _Ring] = {}

    def __len__(self) -> int:
        return len(self._rings)

    def sample(self, key: TopicPartition, end: int, now_ms: int) -> None:
        """Record where a partition ends now; above `RINGS_MAX` partitions no others are added."""
        ring = self._rings.get(key)
        if ring is None:
            if len(self._rings) >= RINGS_MAX:
                return
            ring = self._rings[key] = _Ring()
        ring.add(end, now_ms)

    def retain(self, keys: Collection[TopicPartition]) -> None:
        """Forget all partitions but these."""
        for key in [each for each in self._rings if each not in keys]:
            del self._rings[key]

    def lag_ms(self, key: TopicPartition, committed: int, now_ms: int) -> int | None:
        """Return how long ago the record at an offset was appended; 0 if there is none yet.

        None if that was before the oldest sample.
        """
        ring = self._rings.get(key)
        passed_ms = None if ring is None else ring.when_passed(committed)
        if passed_ms is None:
            return None
        return 0 if passed_ms == NOT_YET else max(now_ms - passed_ms, 0)

    def known_for_ms(self, key: TopicPartition, now_ms: int) -> int | None:
        """Return the age of the oldest sample: a lag that is not known is at least that."""
        ring = self._rings.get(key)
        return None if ring is None else max(now_ms - ring.times[0], 0)


NOT_YET = -1


class _Ring:
    """The samples of one partition, oldest first; neither times nor ends decrease."""

    __slots__ = ("ends", "times")

    def __init__(self) -> None:
        self.times = array("q")
        self.ends = array("q")

    def add(self, end: int, now_ms: int) -> None:
        times, ends = self.times, self.ends
        while ends and ends[-1] > end:  # truncated, or the topic was created again
            ends.pop()
            times.pop()
        if times:
            now_ms = max(now_ms, times[-1])
        if len(ends) >= 2 and ends[-1] == ends[-2] == end:
            times[-1] = now_ms
            return
        times.append(now_ms)
        ends.append(end)
        if len(times) > SAMPLES_MAX:
            self._thin(now_ms)

    def when_passed(self, offset: int) -> int | None:
        """Return when the end passed an offset, `NOT_YET`, or None if before the first sample."""
        times, ends = self.times, self.ends
        if offset >= ends[-1]:
            return NOT_YET
        index = bisect_right(ends, offset) - 1
        if index < 0:
            return None
        since, until = times[index], times[index + 1]
        first, next_ = ends[index], ends[index + 1]
        return since + (until - since) * (offset - first) // (next_ - first)

    def _thin(self, now_ms: int) -> None:
        """Drop samples between two that are near to each other for their age, and the oldest."""
        times = self.times
        kept = [len(times) - 1]
        for index in range(len(times) - 2, -1, -1):
            newer_ms = times[kept[-1]]
            if now_ms - newer_ms > HOUR_MS:
                break
            near_ms = (now_ms - newer_ms) // PRECISION
            if index == 0 or newer_ms - times[index - 1] > near_ms:
                kept.append(index)
        del kept[SAMPLES_MAX - SAMPLES_MAX // 4 :]
        kept.reverse()
        self.times = array("q", [times[index] for index in kept])
        self.ends = array("q", [self.ends[index] for index in kept])
