"""A value that is computed once for all the gauges of one scrape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

KEPT_MS = 100

T = TypeVar("T")


class Recent(Generic[T]):
    """Computes a value when it is asked for, unless that was a moment ago."""

    def __init__(self, compute: Callable[[], T], clock_ms: Callable[[], int]) -> None:
        self._compute = compute
        self._clock_ms = clock_ms
        self._known: tuple[int, T] | None = None

    def __call__(self) -> T:
        """Return the value, at most `KEPT_MS` old."""
        now_ms = self._clock_ms()
        if self._known is None or not 0 <= now_ms - self._known[0] < KEPT_MS:
            self._known = now_ms, self._compute()
        return self._known[1]
