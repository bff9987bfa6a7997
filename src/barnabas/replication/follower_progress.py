"""What a leader knows about one follower, from the follower's fetches alone.

A fetch from an offset means that the follower has everything below it. A follower is *caught up* as
of the last moment at which it is known to have had everything the leader had then: if it fetches
from the leader's log end, that is now; if it fetches from where the leader's log end was at the
previous fetch, that is the time of the previous fetch.
"""

from __future__ import annotations

UNKNOWN = -1


class Follower:
    """One follower, as its leader sees it."""

    __slots__ = (
        "_fetched_ms",
        "_leader_end_then",
        "broker_epoch",
        "broker_id",
        "caught_up_ms",
        "end_offset",
        "high_watermark_sent",
        "log_start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = UNKNOWN
        self.end_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        self.high_watermark_sent = UNKNOWN
        self.caught_up_ms = 0
        self._fetched_ms = 0
        self._leader_end_then = UNKNOWN

    def begin_epoch(self, now_ms: int, *, in_sync: bool) -> None:
        """Reset for a new leader epoch; an in-sync follower gets the full lag time to fetch."""
        self.end_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        self.caught_up_ms = now_ms if in_sync else 0
        self._fetched_ms = 0
        self._leader_end_then = UNKNOWN

    def fetched(
        self, offset: int, log_start_offset: int, broker_epoch: int, leader_end: int, now_ms: int
    ) -> None:
        """Record a fetch from `offset`, at a time when the leader's log ended at `leader_end`."""
        if offset >= leader_end:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif UNKNOWN < self._leader_end_then <= offset:
            self.caught_up_ms = max(self.caught_up_ms, self._fetched_ms)
        self.end_offset = offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self._fetched_ms = now_ms
        self._leader_end_then = leader_end

    def is_caught_up(self, leader_end: int, now_ms: int, lag_ms_max: int) -> bool:
        """Return whether it has caught up with the leader, or had not too long ago."""
        return self.end_offset == leader_end or now_ms - self.caught_up_ms <= lag_ms_max
