"""The rate to which a quota holds a client that would be faster.

A client that sends as fast as it can uses what its windows allow at once, and rests until that has
expired: its rate is that of the quota from one burst to a later one. `BARNABAS_QUOTA_SECONDS` is
how long that is looked at; from 30 on with Kafka's own eleven windows.
"""

from __future__ import annotations

import os
from bisect import bisect_right

SECONDS = float(os.environ.get("BARNABAS_QUOTA_SECONDS", "6"))
WINDOWS = 11 if SECONDS >= 30 else 3
LIMIT = 1_000_000


class Received:
    """When how many bytes were received in all, by the clock of whoever received them."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.totals: list[int] = []

    def add(self, size: int, moment: float) -> None:
        self.totals.append(size + (self.totals[-1] if self.totals else 0))
        self.times.append(moment)

    def until(self, moment: float) -> int:
        position = bisect_right(self.times, moment)
        return self.totals[position - 1] if position else 0

    def bursts(self) -> list[float]:
        """Return when each burst began: a second's worth within half of one."""
        found: list[float] = []
        for moment in self.times:
            if found and moment < found[-1] + WINDOWS - 1:
                continue
            if self.until(moment + 0.5) - self.until(moment) > LIMIT:
                found.append(moment)
        return found

    def rate(self) -> float | None:
        """Return the rate from the second burst (the first is a full one) to a later one."""
        bursts = self.bursts()
        late = [each for each in bursts[2:] if each - bursts[1] >= SECONDS]
        if not late:
            return None
        return (self.until(late[0]) - self.until(bursts[1])) / (late[0] - bursts[1])
