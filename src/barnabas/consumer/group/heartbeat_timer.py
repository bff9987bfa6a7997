"""When heartbeats are due, when a member's session is over, and when its user polls too rarely.

A plain object that is given the time. Heartbeats go every interval; no answer for the session's
length means that the coordinator must be looked for again; no poll for max.poll.interval.ms means
that the user is stuck and others should have its partitions.
"""

from __future__ import annotations

import math


class HeartbeatTimer:
    """The deadlines of one member, in milliseconds."""

    def __init__(
        self, session_timeout_ms: float, interval_ms: float, max_poll_interval_ms: float
    ) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.interval_ms = interval_ms
        self.max_poll_interval_ms = max_poll_interval_ms
        self.polled_ms = math.inf
        self.sent_ms: float | None = None
        self.answered_ms: float | None = None
        self.failures = 0
        """How many heartbeats in a row failed."""
        self._next_ms = 0.0
        self._session_from_ms = 0.0
        self._session_ended = False

    def begin(self, now_ms: float) -> None:
        """Start a new session: the group has just answered."""
        self._renew(now_ms)
        self._next_ms = now_ms + self.interval_ms

    def poll(self, now_ms: float) -> None:
        """The user polled."""
        self.polled_ms = now_ms

    def send_now(self, now_ms: float) -> None:
        """Make the next heartbeat due at once: the group must learn something."""
        self._next_ms = min(self._next_ms, now_ms)

    def send(self, now_ms: float) -> None:
        """A heartbeat is sent."""
        self.sent_ms = now_ms
        self._next_ms = now_ms + self.interval_ms

    def answer(self, now_ms: float) -> None:
        """The coordinator answered."""
        self.answered_ms = now_ms
        self._renew(now_ms)

    def fail(self, now_ms: float, pause_ms: float) -> None:
        """The last heartbeat failed; the next goes after a pause."""
        self.failures += 1
        self._next_ms = now_ms + min(pause_ms, self.interval_ms)

    def wait_ms(self, now_ms: float) -> float:
        """Return how long there is nothing to do."""
        return max(0.0, min(self._next_ms, self.poll_deadline_ms) - now_ms)

    @property
    def poll_deadline_ms(self) -> float:
        """Until when the user has to poll again."""
        return self.polled_ms + self.max_poll_interval_ms

    def is_due(self, now_ms: float) -> bool:
        """Return whether a heartbeat should be sent."""
        return now_ms >= self._next_ms

    def is_poll_overdue(self, now_ms: float) -> bool:
        """Return whether the user has not polled for too long."""
        return now_ms >= self.poll_deadline_ms

    def ends_session(self, now_ms: float) -> bool:
        """Return whether no heartbeat was answered for a whole session; True only once for each."""
        is_over = now_ms - self._session_from_ms >= self.session_timeout_ms
        is_new = is_over and not self._session_ended
        self._session_ended = is_over
        return is_new

    def _renew(self, now_ms: float) -> None:
        self._session_from_ms = now_ms
        self._session_ended = False
        self.failures = 0
