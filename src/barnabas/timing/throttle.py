"""A limit on a rate: bytes are counted in windows, and a copier rests while there are too many.

The rate is exceeded while the average over the last windows is above the limit. Plain objects; the
time is an argument.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

UNLIMITED = 2**63 - 1


class WindowedRate:
    """Bytes per second, over the last windows."""

    __slots__ = ("_count", "_window_ms", "_windows")

    def __init__(self, count: int = 11, window_ms: int = 1000) -> None:
        self._count = count
        self._window_ms = window_ms
        self._windows: deque[list[int]] = deque()
        """When each began, and its bytes."""

    def record(self, size_bytes: int, now_ms: int) -> None:
        """Count bytes."""
        self._forget(now_ms)
        if not self._windows or now_ms - self._windows[-1][0] >= self._window_ms:
            self._windows.append([now_ms, 0])
        self._windows[-1][1] += size_bytes

    def per_second(self, now_ms: int) -> float:
        """Return the average since the oldest window began, that is over one window at least."""
        total, elapsed_ms = self._totals(now_ms)
        return total * 1000 / elapsed_ms

    def wait_ms(self, limit: int, now_ms: int) -> int:
        """Return how long nothing may be added until the average is at the limit again."""
        total, elapsed_ms = self._totals(now_ms)
        if limit <= 0:
            return self._window_ms if total else 0
        return max(-(-total * 1000 // limit) - elapsed_ms, 0)

    def _totals(self, now_ms: int) -> tuple[int, int]:
        self._forget(now_ms)
        if not self._windows:
            return 0, self._window_ms
        total = sum(size for _, size in self._windows)
        return total, max(now_ms - self._windows[0][0], self._window_ms)

    def _forget(self, now_ms: int) -> None:
        while self._windows and now_ms - self._windows[0][0] >= self._count * self._window_ms:
            self._windows.popleft()


class Throttle:
    """One direction: a limit that may change at any time, and what was copied."""

    __slots__ = ("_limit", "_rate")

    def __init__(self, limit: Callable[[], int], rate: WindowedRate) -> None:
        self._limit = limit
        self._rate = rate

    def record(self, size_bytes: int, now_ms: int) -> None:
        """Count what was copied for a throttled replica."""
        self._rate.record(size_bytes, now_ms)

    def is_exceeded(self, now_ms: int) -> bool:
        """Return whether throttled replicas must wait."""
        limit = self._limit()
        return limit < UNLIMITED and self._rate.per_second(now_ms) > limit

    def wait_ms(self, now_ms: int) -> int:
        """Return how long a copier should rest; the limit may have changed by then."""
        limit = self._limit()
        return 0 if limit >= UNLIMITED else self._rate.wait_ms(limit, now_ms)
