"""What a group member counts, under the names of Kafka's consumers.

Everything here happens at most some times per second: heartbeats, commits, rebalances. Times are
in milliseconds of the loop's clock; averages, maxima and rates are since the start.
"""

from __future__ import annotations


class Times:
    """How often something was done, and how long it took."""

    __slots__ = ("count", "longest_ms", "total_ms")

    def __init__(self) -> None:
        self.count = 0
        self.total_ms = 0.0
        self.longest_ms = 0.0

    def record(self, elapsed_ms: float) -> None:
        """Count one that took so long."""
        self.count += 1
        self.total_ms += elapsed_ms
        if elapsed_ms > self.longest_ms:
            self.longest_ms = elapsed_ms

    @property
    def average_ms(self) -> float:
        """The average time, 0 if nothing was counted."""
        return self.total_ms / self.count if self.count else 0.0


class GroupCounts:
    """The requests of one member to its coordinator, and its rebalances."""

    def __init__(self) -> None:
        self.commits = Times()
        self.heartbeats = Times()
        """Those with a response."""
        self.joins = Times()
        self.syncs = Times()
        self.rebalances = Times()
        self.rebalances_failed = 0
        self.heartbeat_sent_ms: float | None = None
        self.rebalanced_ms: float | None = None
        """When the last rebalance was completed."""
        self.assigned = Times()
        self.revoked = Times()
        self.lost = Times()
        self._rebalancing_since_ms: float | None = None

    def rebalance_begins(self, now_ms: float) -> None:
        """Record that a rebalance begins, unless one is in progress."""
        if self._rebalancing_since_ms is None:
            self._rebalancing_since_ms = now_ms

    def rebalance_ends(self, now_ms: float) -> None:
        """Record that this member has its new assignment."""
        since_ms, self._rebalancing_since_ms = self._rebalancing_since_ms, None
        if since_ms is not None:
            self.rebalances.record(now_ms - since_ms)
        self.rebalanced_ms = now_ms

    def rebalance_fails(self) -> None:
        """Record that a rebalance ended without an assignment for this member."""
        self._rebalancing_since_ms = None
        self.rebalances_failed += 1

    def metrics(self, assigned: int, elapsed_s: float, now_ms: float) -> dict[str, float]:
        """Return the metrics of a consumer with so many partitions."""
        seconds = max(elapsed_s, 1e-9)
        commits, heartbeats, joins, syncs = self.commits, self.heartbeats, self.joins, self.syncs
        rebalances = self.rebalances
        return {
            "assigned-partitions": assigned,
            "commit-total": commits.count,
            "commit-rate": commits.count / seconds,
            "commit-latency-avg": commits.average_ms,
            "commit-latency-max": commits.longest_ms,
            "heartbeat-total": heartbeats.count,
            "heartbeat-rate": heartbeats.count / seconds,
            "heartbeat-response-time-max": heartbeats.longest_ms,
            "last-heartbeat-seconds-ago": _ago_s(self.heartbeat_sent_ms, now_ms),
            "join-total": joins.count,
            "join-rate": joins.count / seconds,
            "join-time-avg": joins.average_ms,
            "join-time-max": joins.longest_ms,
            "sync-total": syncs.count,
            "sync-rate": syncs.count / seconds,
            "sync-time-avg": syncs.average_ms,
            "sync-time-max": syncs.longest_ms,
            "rebalance-total": rebalances.count,
            "rebalance-rate-per-hour": rebalances.count / seconds * 3600,
            "rebalance-latency-total": rebalances.total_ms,
            "rebalance-latency-avg": rebalances.average_ms,
            "rebalance-latency-max": rebalances.longest_ms,
            "failed-rebalance-total": self.rebalances_failed,
            "failed-rebalance-rate-per-hour": self.rebalances_failed / seconds * 3600,
            "last-rebalance-seconds-ago": _ago_s(self.rebalanced_ms, now_ms),
            "partition-assigned-latency-avg": self.assigned.average_ms,
            "partition-assigned-latency-max": self.assigned.longest_ms,
            "partition-revoked-latency-avg": self.revoked.average_ms,
            "partition-revoked-latency-max": self.revoked.longest_ms,
            "partition-lost-latency-avg": self.lost.average_ms,
            "partition-lost-latency-max": self.lost.longest_ms,
        }


def _ago_s(then_ms: float | None, now_ms: float) -> float:
    """Return the age of an event; -1, as Kafka's consumers, if there was none."""
    return -1.0 if then_ms is None else (now_ms - then_ms) / 1000
