"""Failed log-ins: after five in a minute, by name or by address, one has to wait, ever longer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

FREE = 5
WINDOW_S = 60.0
PAUSE_S_MAX = 900.0
TRACKED_MAX = 10_000


@dataclass(slots=True)
class _Count:
    count: int
    since_s: float
    until_s: float


class Failures:
    """Counts failures, and says how long to wait before the next attempt."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._counts: dict[tuple[str, str], _Count] = {}

    def wait_s(self, name: str, host: str) -> float:
        """Return how long this name, or this address, must wait; 0 if not at all."""
        now_s = self._now_s()
        found = (self._counts.get(key) for key in _keys(name, host))
        return max(0.0, *(each.until_s - now_s for each in found if each is not None), 0.0)

    def failed(self, name: str, host: str) -> None:
        """Count a failure: each beyond the free ones doubles the pause."""
        now_s = self._now_s()
        for key in _keys(name, host):
            count = self._counts.get(key)
            if count is None or now_s - max(count.since_s, count.until_s) > WINDOW_S:
                if len(self._counts) >= TRACKED_MAX:
                    self._counts.pop(next(iter(self._counts)))
                count = self._counts[key] = _Count(0, now_s, 0.0)
            count.count += 1
            if count.count >= FREE:
                pause_s = min(2.0 ** (count.count - FREE), PAUSE_S_MAX)
                count.until_s = now_s + pause_s

    def succeeded(self, name: str, host: str) -> None:
        """Forget the failures of a name; its address may still be guessing others."""
        self._counts.pop(("name", name), None)


def _keys(name: str, host: str) -> list[tuple[str, str]]:
    return [("name", name[:256]), ("host", host)]
