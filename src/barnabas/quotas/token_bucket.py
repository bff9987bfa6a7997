"""A token bucket: bursts are allowed up to what it holds, and overdrawing it delays the next one.

It fills at a limit per second up to all windows' worth of it, and is full at first.
"""

from __future__ import annotations

from barnabas.quotas.sampled_rate import Windows, rounded

UNLIMITED = float("inf")


class TokenBucket:
    """Tokens that changes of partitions take; below zero further changes have to wait."""

    __slots__ = ("_limit", "_tokens", "_updated_ms", "_windows")

    def __init__(self, windows: Windows, limit: float) -> None:
        self._windows = windows
        self._limit = limit
        self._tokens = 0.0
        self._updated_ms: int | None = None

    def set_limit(self, limit: float, now_ms: int) -> None:
        """Change the limit; the tokens stay, unless the bucket holds fewer now."""
        self._refill(now_ms)
        if self._limit == UNLIMITED:
            self._updated_ms = None  # nothing was counted: it is full
        self._limit = limit

    def tokens(self, now_ms: int) -> float:
        """Return the tokens that are left; negative if it is overdrawn."""
        self._refill(now_ms)
        return UNLIMITED if self._limit == UNLIMITED else self._tokens

    def take(self, count: float, now_ms: int) -> None:
        """Take tokens, even if there are not as many."""
        self._refill(now_ms)
        self._tokens -= count

    def throttle_ms(self, now_ms: int) -> int:
        """Return how long it takes until the bucket is no longer overdrawn."""
        tokens = self.tokens(now_ms)
        return rounded(-tokens / self._limit * 1000) if tokens < 0 else 0

    def _refill(self, now_ms: int) -> None:
        if self._limit == UNLIMITED:
            return
        burst = self._windows.num * self._windows.size_ms * self._limit / 1000
        if self._updated_ms is None:
            self._tokens = burst
        else:
            gained = self._limit * (now_ms - self._updated_ms) / 1000
            self._tokens = min(burst, self._tokens + gained)
        self._updated_ms = now_ms
