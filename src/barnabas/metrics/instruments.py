"""Metric instruments: counters, gauges and histograms.

The hot calls (`Counter.add`, `Histogram.record`) are a few attribute and list operations: no
clock, no lock, no lasting allocation. Reading may cost more. Memory is bounded: a
histogram has at most `BUCKETS_MAX` counts, whatever is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil


class Counter:
    """A number that only increases."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def add(self, amount: int = 1) -> None:
        """Count one, or `amount`."""
        self.value += amount


class Gauge:
    """A number that is computed when it is read."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], float]) -> None:
        self._read = read

    @property
    def value(self) -> float:
        """The current number."""
        return self._read()


SUB_BITS = 4
"""A histogram splits each power of two into 2**SUB_BITS buckets: a precision of about 3 %."""

_EXACT = 1 << (SUB_BITS + 1)
_VALUE_BITS = 48
BUCKETS_MAX = (_VALUE_BITS - SUB_BITS + 1) << SUB_BITS


class Histogram:
    """A distribution of integers since the start, in buckets whose width grows with the value.

        value       0 1 2 … 31 | 32 33 | 34 35 | … | 62 63 | 64-67 | 68-71 | …
        bucket      0 1 2 … 31 |  32   |  33   | … |  47   |  48   |  49   | …

    Values from 2**48 (nine years in microseconds) are counted in the largest bucket, negative ones
    as 0. Quantiles are those of the last two windows, which `rotate` ends: the owner calls it by
    the clock, so that no reader disturbs another. Without it they are those of all values.
    """

    __slots__ = ("_before", "_began", "_counts", "_total")

    def __init__(self) -> None:
        self._counts = [0] * _EXACT
        self._total = 0
        self._before: list[int] = []
        """The buckets as they were when the previous window began."""
        self._began: list[int] = []
        """The buckets as they were when the current window began."""

    def record(self, value: int) -> None:
        """Count one occurrence of a value."""
        self._total += value
        try:
            if value < _EXACT:
                self._counts[value if value > 0 else 0] += 1
            else:
                shift = value.bit_length() - (SUB_BITS + 1)
                self._counts[(shift << SUB_BITS) + (value >> shift)] += 1
        except IndexError:
            self._record_beyond(value)

    def bins(self) -> list[int]:
        """Return the count of each bucket, in order, in a list of the histogram's own."""
        return self._counts

    @property
    def count(self) -> int:
        """How many values were recorded."""
        return sum(self.bins())

    @property
    def total(self) -> int:
        """The sum of the values."""
        return self._total

    def rotate(self) -> None:
        """Begin a window; the current one becomes the previous one, which is dropped."""
        self._before, self._began = self._began, list(self.bins())

    @property
    def mean(self) -> float:
        """The average of the values, 0 if there are none."""
        count = self.count
        return self.total / count if count else 0.0

    def quantile(self, fraction: float) -> int:
        """Return the value at or below which this fraction of recent values is (0 if none)."""
        return self.quantiles(fraction)[0]

    def quantiles(self, *fractions: float) -> list[int]:
        """Return several quantiles in one pass over the buckets; fractions in ascending order."""
        counts = self._recent()
        count = sum(counts)
        values = []
        reached = 0
        index = -1
        for fraction in fractions:
            assert 0.0 <= fraction <= 1.0, fraction
            rank = max(1, ceil(fraction * count))
            while reached < rank and index + 1 < len(counts):
                index += 1
                reached += counts[index]
            values.append(_middle(index) if count else 0)
        return values

    def buckets(self) -> list[tuple[int, int]]:
        """Return the largest value and the count of each bucket that is not empty."""
        return [(_largest(index), count) for index, count in enumerate(self.bins()) if count]

    def _recent(self) -> list[int]:
        """Return the counts of the current and the previous window."""
        counts, before = self.bins(), self._before
        if not before:
            return counts
        recent = [now - then for now, then in zip(counts, before, strict=False)]
        return recent + counts[len(before) :]

    def _record_beyond(self, value: int) -> None:
        """Grow to include a bucket, at most to the last one."""
        shift = value.bit_length() - (SUB_BITS + 1)
        index = min((shift << SUB_BITS) + (value >> shift), BUCKETS_MAX - 1)
        counts = self._counts
        if index >= len(counts):
            counts.extend([0] * (index + 1 - len(counts)))
        counts[index] += 1


class SizeHistogram(Histogram):
    """A distribution that hot code records in without a call: `counts[BUCKET_OF[size]] += 1`.

    An IndexError says that the value is larger: then it is recorded as in any histogram. The total
    is computed from the buckets, and right within three percent.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        self._counts = [0] * (BUCKET_OF[-1] + 1)

    @property
    def counts(self) -> list[int]:
        """The buckets to record in."""
        return self._counts

    @property
    def total(self) -> int:
        return total_of(self._counts)


def total_of(counts: list[int]) -> int:
    """Return about the sum of the values in buckets."""
    return sum(count * _middle(index) for index, count in enumerate(counts) if count)


def _smallest(index: int) -> int:
    if index < _EXACT:
        return index
    shift = (index >> SUB_BITS) - 1
    return (index - (shift << SUB_BITS)) << shift


def _largest(index: int) -> int:
    return _smallest(index + 1) - 1


def _middle(index: int) -> int:
    return (_smallest(index) + _largest(index)) // 2


BUCKET_OF = b"".join(
    bytes([index]) * (_largest(index) - _smallest(index) + 1) for index in range(13 << SUB_BITS)
)
"""The bucket of each value below 2**16."""
