"""A rate over a few windows of samples, and the throttle time if it exceeds a limit.

This is Kafka's arithmetic, to the millisecond: clients and dashboards know its throttle times. A
value goes into the current sample; a sample that is a window old is followed by a new one. A
sample expires when its last value is all windows old, and then counts as one that begins at that
moment. The rate is the sum over the time since the oldest sample began, with at least all windows
but one counted as full.
"""

from __future__ import annotations

from math import floor
from typing import NamedTuple, cast


class Windows(NamedTuple):
    """How many samples a rate has, and how long each is."""

    num: int = 11
    size_ms: int = 1000

    @property
    def burst_ms(self) -> int:
        """The time in which a limit may be used up at once: all windows but one."""
        return (self.num - 1) * self.size_ms


class _Sample:
    __slots__ = ("last_ms", "start_ms", "total")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.total = 0.0


class SampledRate:
    """A rate per second.

    The sum and the beginning of the oldest sample are kept, until a sample may have expired.
    """

    __slots__ = (
        "_burst_ms",
        "_current",
        "_current_ends_ms",
        "_oldest_ms",
        "_samples",
        "_total",
        "_valid_until_ms",
        "_windows",
    )

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._burst_ms = windows.burst_ms
        self._samples: list[_Sample] = []
        self._current: _Sample = cast(_Sample, None)
        self._current_ends_ms = -1 << 62
        self._total = 0.0
        self._oldest_ms = 0
        self._valid_until_ms = -1 << 62

    def record(self, value: float, now_ms: int) -> None:
        """Count a value; a negative one takes an earlier one back."""
        if now_ms >= self._current_ends_ms:
            self._advance(now_ms)
        sample = self._current
        sample.total += value
        sample.last_ms = now_ms
        self._total += value

    def record_limited(self, value: float, limit: float, now_ms: int) -> int:
        """Count a value, and return the throttle time: `record` and `throttle_ms` in one call."""
        if now_ms >= self._current_ends_ms:
            self._advance(now_ms)
        sample = self._current
        sample.total += value
        sample.last_ms = now_ms
        total = self._total = self._total + value
        if now_ms < self._valid_until_ms and total * 1000 <= limit * self._burst_ms:
            return 0  # as in `throttle_ms`
        return self.throttle_ms(limit, now_ms)

    def _advance(self, now_ms: int) -> None:
        """Begin a sample, in place of the oldest once there is one more than windows."""
        samples, num = self._samples, self._windows.num
        if len(samples) <= num:
            sample = _Sample(now_ms)
        else:
            sample = samples.pop(0)
            sample.reset(now_ms)
        samples.append(sample)
        self._current = sample
        self._current_ends_ms = now_ms + self._windows.size_ms
        self._valid_until_ms = now_ms  # add up again

    def measure(self, now_ms: int) -> tuple[float, int]:
        """Return the sum of the samples, and the milliseconds over which it is spread."""
        num, size_ms = self._windows
        if now_ms >= self._valid_until_ms:
            if not self._samples:
                self._advance(now_ms)
            self._add_up(now_ms, num * size_ms)
        elapsed_ms = now_ms - self._oldest_ms
        missing = num - 1 - elapsed_ms // size_ms
        if missing > 0:
            elapsed_ms += missing * size_ms
        return self._total, elapsed_ms or 1

    def _add_up(self, now_ms: int, expiry_ms: int) -> None:
        """Begin the samples that have expired again, and add up the others."""
        total = 0.0
        oldest_ms = now_ms
        valid_until_ms = now_ms + expiry_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= expiry_ms:
                sample.reset(now_ms)
                if sample is self._current:
                    self._current_ends_ms = now_ms + self._windows.size_ms
            else:
                total += sample.total
                oldest_ms = min(oldest_ms, sample.start_ms)
                valid_until_ms = min(valid_until_ms, sample.last_ms + expiry_ms)
        self._total = total
        self._oldest_ms = oldest_ms
        self._valid_until_ms = valid_until_ms

    def per_second(self, now_ms: int) -> float:
        """Return the current rate."""
        total, window_ms = self.measure(now_ms)
        return total * 1000 / window_ms

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Return how long the rate must rest to be at the limit again; 0 if it is not above."""
        if now_ms < self._valid_until_ms and self._total * 1000 <= limit * self._burst_ms:
            return 0  # the usual case, whatever the window
        total, window_ms = self.measure(now_ms)
        rate = total * 1000 / window_ms
        return rounded((rate - limit) / limit * window_ms) if rate > limit else 0


class SampledAverage:
    """The average of the values of the last windows, 0 without any."""

    __slots__ = ("_count", "_total")

    def __init__(self, windows: Windows) -> None:
        self._total = SampledRate(windows)
        self._count = SampledRate(windows)

    def record(self, value: float, now_ms: int) -> None:
        """Count a value."""
        self._total.record(value, now_ms)
        self._count.record(1, now_ms)

    def value(self, now_ms: int) -> float:
        """Return the average."""
        count, _ = self._count.measure(now_ms)
        return self._total.measure(now_ms)[0] / count if count else 0.0


def rounded(value: float) -> int:
    """Round half up, as Java does."""
    return floor(value + 0.5)
