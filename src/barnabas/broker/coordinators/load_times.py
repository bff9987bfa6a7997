"""How long coordinators took to load their partitions lately, with time passed in."""

from __future__ import annotations

from collections import deque

WINDOW_MS = 30_000


class LoadTimes:
    """The loads of the last 30 seconds."""

    def __init__(self) -> None:
        self._loads: deque[tuple[int, int]] = deque()

    def loaded(self, took_ms: int, now_ms: int) -> None:
        """Record a load that has just ended."""
        self._recent(now_ms)
        self._loads.append((now_ms, took_ms))

    def longest_ms(self, now_ms: int) -> int:
        """Return the longest, 0 without any."""
        return max(self._recent(now_ms), default=0)

    def average_ms(self, now_ms: int) -> float:
        """Return the average, 0 without any."""
        recent = self._recent(now_ms)
        return sum(recent) / len(recent) if recent else 0.0

    def _recent(self, now_ms: int) -> list[int]:
        while self._loads and now_ms - self._loads[0][0] > WINDOW_MS:
            self._loads.popleft()
        return [took_ms for _, took_ms in self._loads]
