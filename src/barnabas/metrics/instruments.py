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
    """A distribution of integers, in buckets whose width grows with the value.

        value       0 1 2 … 31 | 32 33 | 34 35 | … | 62 63 | 64-67 | 68-71 | …
        bucket      0 1 2 … 31 |  32   |  33   | … |  47   |  48   |  49   | …

    Values from 2**48 (nine years in microseconds) are counted in the largest bucket, negative ones
    as 0.
    """

    __slots__ = ("_counts", "total")

    def __init__(self) -> None:
        self._counts = [0] * _EXACT
        self.total = 0

    def record(self, value: int) -> None:
        """Count one occurrence of a value."""
        self.total += value
        try:
            if value < _EXACT:
                self._counts[value if value > 0 else 0] += 1
            else:
                shift = value.bit_length() - (SUB_BITS + 1)
                self._counts[(shift << SUB_BITS) + (value >> shift)] += 1
        except IndexError:
            self._record_beyond(value)

    @property
    def count(self) -> int:
        """How many values were recorded."""
        return sum(self._counts)

    @property
    def mean(self) -> float:
        """The average of the values, 0 if there are none."""
        count = self.count
        return self.total / count if count else 0.0

    def quantile(self, fraction: float) -> int:
        """Return the value at or below which this fraction of the values is (0 if none)."""
        return self.quantiles(fraction)[0]

    def quantiles(self, *fractions: float) -> list[int]:
        """Return several quantiles in one pass over the buckets; fractions in ascending order."""
        count = self.count
        values = []
        reached = 0
        index = -1
        for fraction in fractions:
            assert 0.0 <= fraction <= 1.0, fraction
            rank = max(1, ceil(fraction * count))
            while reached < rank and index + 1 < len(self._counts):
                index += 1
                reached += self._counts[index]
            values.append(_middle(index) if count else 0)
        return values

    def buckets(self) -> list[tuple[int, int]]:
        """Return the largest value and the count of each bucket that is not empty."""
        return [(_largest(index), count) for index, count in enumerate(self._counts) if count]

    def _record_beyond(self, value: int) -> None:
        """Grow to include a bucket, at most to the last one."""
        shift = value.bit_length() - (SUB_BITS + 1)
        index = min((shift << SUB_BITS) + (value >> shift), BUCKETS_MAX - 1)
        counts = self._counts
        if index >= len(counts):
            counts.extend([0] * (index + 1 - len(counts)))
        counts[index] += 1


def _smallest(index: int) -> int:
    if index < _EXACT:
        return index
    shift = (index >> SUB_BITS) - 1
    return (index - (shift << SUB_BITS)) << shift


def _largest(index: int) -> int:
    return _smallest(index + 1) - 1


def _middle(index: int) -> int:
    return (_smallest(index) + _largest(index)) // 2
