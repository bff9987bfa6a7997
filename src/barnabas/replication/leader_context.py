"""What a leader needs from its broker to judge its followers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LeaderContext:
    """The clock for measuring lag, the live brokers, and how long a follower may lag."""

    clock_ms: Callable[[], int]
    """Must be monotonic: a follower's lag is a difference of its times."""
    is_alive: Callable[[int], bool]
    lag_ms_max: Callable[[], int]


ALONE = LeaderContext(lambda: 0, lambda _: False, lambda: 0)
"""For a partition that has no other replica."""
