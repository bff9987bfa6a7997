"""When heartbeats are due, when a member's session expires, and when its user polls too rarely.

A plain object that is passed the time. Heartbeats are sent every interval; no response within the
session timeout means that the coordinator must be looked up again; no poll for max.poll.interval.ms
means that the user is stuck and others should get its partitions.
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
        self.answered_ms: float | None = None
        self.failures = 0
        """How many heartbeats in a row failed."""
        self._next_ms = 0.0
        self._session_from_ms = 0.0
        self._session_ended = False

    def begin(self, now_ms: float) -> None:
        """Start a new session: the group has just responded."""
        self._renew(now_ms)
        self._next_ms = now_ms + self.interval_ms

    def poll(self, now_ms: float) -> None:
        """Record a poll of the user."""
        self.polled_ms = now_ms

    def send_now(self, now_ms: float) -> None:
        """Make the next heartbeat due at once: the group must learn something."""
        self._next_ms = min(self._next_ms, now_ms)

    def send(self, now_ms: float) -> None:
        """Record that a heartbeat is sent."""
        self._next_ms = now_ms + self.interval_ms

    def answer(self, now_ms: float) -> None:
        """Record a response of the coordinator."""
        self.answered_ms = now_ms
        self._renew(now_ms)

    def fail(self, now_ms: float, pause_ms: float) -> None:
        """Record that the last heartbeat failed; the next one is sent after a back-off."""
        self.failures += 1
        self._next_ms = now_ms + min(pause_ms, self.interval_ms)

    def wait_ms(self, now_ms: float) -> float:
        """Return how long there is nothing to do."""
        return max(0.0, min(self._next_ms, self.poll_deadline_ms) - now_ms)

    @property
    def poll_deadline_ms(self) -> float:
        """The deadline for the user's next poll."""
        return self.polled_ms + self.max_poll_interval_ms

    def is_due(self, now_ms: float) -> bool:
        """Return whether a heartbeat should be sent."""
        return now_ms >= self._next_ms

    def is_poll_overdue(self, now_ms: float) -> bool:
        """Return whether the user has not polled for too long."""
        return now_ms >= self.poll_deadline_ms

    def ends_session(self, now_ms: float) -> bool:
        """Return whether the session has expired without a response; True only once per session."""
        is_over = now_ms - self._session_from_ms >= self.session_timeout_ms
        is_new = is_over and not self._session_ended
        self._session_ended = is_over
        return is_new

    def _renew(self, now_ms: float) -> None:
        self._session_from_ms = now_ms
        self._session_ended = False
        self.failures = 0
