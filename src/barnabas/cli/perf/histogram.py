"""Counts of latencies: constant memory, relative errors below 1 %, and they can be added up.

As in HdrHistogram, buckets are as wide as the values allow: values below 256 have a bucket each,
and each further power of two has 128.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import ceil
from typing import Any, NamedTuple

_BITS = 7
_EXACT = 1 << (_BITS + 1)
VALUE_MAX = (1 << 42) - 1
"""Larger values count as this: 50 days, in microseconds."""


class Bar(NamedTuple):
    """How many values are from `low` up to `high`, which is not included."""

    low: int
    high: int
    values: int


class LatencyHistogram:
    """Latencies in microseconds."""

    def __init__(self) -> None:
        self._counts = [0] * (_bucket(VALUE_MAX) + 1)
        self.count = 0
        self.total = 0
        self.max = 0

    def add(self, latency_us: int, count: int = 1) -> None:
        """Count a latency; a negative one, of clocks that differ, counts as 0."""
        latency_us = min(max(latency_us, 0), VALUE_MAX)
        shift = latency_us.bit_length() - (_BITS + 1)
        # This is _bucket, which would be a call for each record.
        bucket = latency_us if shift <= 0 else (shift << _BITS) + (latency_us >> shift)
        self._counts[bucket] += count
        self.count += count
        self.total += latency_us * count
        if latency_us > self.max:
            self.max = latency_us

    def merge(self, other: LatencyHistogram) -> None:
        """Add the values of another histogram."""
        self._counts = [a + b for a, b in zip(self._counts, other._counts, strict=True)]
        self.count += other.count
        self.total += other.total
        self.max = max(self.max, other.max)

    @property
    def mean(self) -> float:
        """The average; 0 without values."""
        return self.total / self.count if self.count else 0.0

    def percentile(self, percent: float) -> int:
        """Return the latency that so many percent of all do not exceed; 0 without values."""
        assert 0 <= percent <= 100
        wanted = max(ceil(self.count * percent / 100), 1)
        seen = 0
        for bucket, count in enumerate(self._counts):
            seen += count
            if count and seen >= wanted:
                return min(_highest(bucket), self.max)
        return 0

    def bars(self) -> list[Bar]:
        """Return the counts between 1, 2, 5, 10, 20, 50, … microseconds, without empty ends."""
        edges = [0]
        while edges[-1] <= self.max:
            edges.append(_next_edge(edges[-1]))
        bars = [Bar(low, high, 0) for low, high in pairwise(edges)]
        at = 0
        for bucket, count in enumerate(self._counts):
            if not count:
                continue
            while _lowest(bucket) >= bars[at].high:
                at += 1
            bars[at] = bars[at]._replace(values=bars[at].values + count)
        while bars and not bars[0].values:
            bars.pop(0)
        while bars and not bars[-1].values:
            bars.pop()
        return bars

    def document(self) -> dict[str, Any]:
        """Return the values as JSON can have them."""
        buckets = {str(bucket): count for bucket, count in enumerate(self._counts) if count}
        return {"buckets": buckets, "total": self.total, "max": self.max}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> LatencyHistogram:
        """Return the histogram of a document."""
        histogram = cls()
        for bucket, count in document["buckets"].items():
            histogram._counts[int(bucket)] = count
            histogram.count += count
        histogram.total = document["total"]
        histogram.max = document["max"]
        return histogram


def _bucket(value: int) -> int:
    shift = value.bit_length() - (_BITS + 1)
    return value if shift <= 0 else (shift << _BITS) + (value >> shift)


def _lowest(bucket: int) -> int:
    if bucket < _EXACT:
        return bucket
    shift = (bucket >> _BITS) - 1
    return ((bucket & (_EXACT // 2 - 1)) | _EXACT // 2) << shift


def _highest(bucket: int) -> int:
    return _lowest(bucket + 1) - 1


def _next_edge(edge: int) -> int:
    """Return what follows in 0, 1, 2, 5, 10, 20, 50, …"""
    if not edge:
        return 1
    first = int(str(edge)[0])
    return edge // first * {1: 2, 2: 5, 5: 10}[first]
