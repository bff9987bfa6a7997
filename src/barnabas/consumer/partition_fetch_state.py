"""The fetching of one assigned partition: its next offset, and why it is blocked.

A plain object, notified of events with the time. Fetching runs ahead of the user: `offset` is after
everything that was fetched, the user's position somewhere before it. When the user moves elsewhere
(the state's version changes), fetching restarts at the new position.
"""

from __future__ import annotations

from enum import Enum

from barnabas.consumer.subscription import Assigned
from barnabas.model.ids import NO_EPOCH, TopicPartition


class BlockedBy(Enum):
    """Why a partition is not fetched at the moment."""

    REVOKED = "no longer assigned"
    PAUSED = "paused"
    NO_POSITION = "looking up its position"
    HALTED = "stopped by an error, which the next poll raises"
    NO_LEADER = "waiting for a leader"
    UNVALIDATED = "validating its position with the new leader"
    BACKING_OFF = "backing off after an error"
    FULL = "enough is prefetched"
    FETCHING = "fetching"


class PartitionFetch:
    """The fetching of one partition, as the network side sees it."""

    __slots__ = (
        "arrived",
        "checking_epoch",
        "epoch",
        "failure",
        "failures",
        "fetching",
        "halted",
        "leader_epoch",
        "leaderless_since_ms",
        "offset",
        "preferred_id",
        "preferred_until_ms",
        "released",
        "retry_ms",
        "state",
        "validating",
        "version",
    )

    def __init__(self, state: Assigned) -> None:
        self.state = state
        self.preferred_id = -1
        self.preferred_until_ms = 0.0
        self.leaderless_since_ms: float | None = None
        self.failure: Exception | None = None
        # Bytes received, and bytes that the user's side has consumed: each side counts its own.
        self.arrived = 0
        self.released = 0
        self._restart()

    def _restart(self) -> None:
        # The version is read first: if the user moves meanwhile, the next look restarts again.
        self.version = self.state.version
        self.offset = self.state.position
        self.epoch = self.state.leader_epoch
        self.leader_epoch = NO_EPOCH  # of the leader against whose log the position was validated
        self.checking_epoch = NO_EPOCH
        self.validating = False
        self.halted = False
        self.failures = 0
        self.retry_ms = 0.0
        self.fetching: int | None = None  # the offset of the fetch in flight

    def __repr__(self) -> str:
        return f"<PartitionFetch {self.partition} at {self.offset}, {self.ahead} bytes ahead>"

    @property
    def partition(self) -> TopicPartition:
        return self.state.partition

    @property
    def ahead(self) -> int:
        """How many fetched bytes the user has not taken yet."""
        return self.arrived - self.released

    def follow_position(self) -> None:
        """Restart if the user has moved."""
        if self.version != self.state.version:
            self._restart()

    def must_validate(self, leader_epoch: int) -> bool:
        """Take the leader's epoch; return whether the position must be validated against its log.

        A leader elected uncleanly may lack records that were read. Only the epoch of the last
        record reveals that; without one there is nothing to check.
        """
        if leader_epoch <= self.leader_epoch or self.validating:
            return False
        if self.epoch < 0 or self.epoch == leader_epoch:
            self.leader_epoch = leader_epoch  # nothing to check, or this leader's own record
            return False
        self.checking_epoch = leader_epoch
        return True

    def validated(self) -> None:
        """Record that the leader's log contains what was read."""
        self.leader_epoch = self.checking_epoch

    def blocked_by(self, now_ms: float, ahead_max: int) -> BlockedBy | None:
        """Return why the partition is not fetched now, None if it is."""
        state = self.state
        if not state.owned:
            return BlockedBy.REVOKED
        if self.offset is None:
            return BlockedBy.NO_POSITION
        if self.halted:
            return BlockedBy.HALTED
        if state.paused:
            return BlockedBy.PAUSED
        if self.leaderless_since_ms is not None:
            return BlockedBy.NO_LEADER
        if self.validating:
            return BlockedBy.UNVALIDATED
        if now_ms < self.retry_ms:
            return BlockedBy.BACKING_OFF
        if self.fetching == self.offset:
            return BlockedBy.FETCHING
        if self.ahead >= ahead_max:
            return BlockedBy.FULL
        return None

    def received(self, size: int, next_offset: int, epoch: int, leader_epoch: int) -> None:
        """Continue after what was received."""
        self.arrived += size
        self.offset = next_offset
        if epoch >= 0:
            self.epoch = epoch
        self.leader_epoch = max(self.leader_epoch, leader_epoch)
        self.recovered()

    def recovered(self) -> None:
        """Clear the failures after a response."""
        self.failures = 0
        self.retry_ms = 0.0
        self.failure = None

    def failed(self, failure: Exception, retry_ms: float) -> None:
        """Back off until then before the next attempt."""
        self.failure = failure
        self.retry_ms = retry_ms

    def prefer(self, node_id: int, until_ms: float) -> None:
        """Fetch from this replica until then (KIP-392)."""
        self.preferred_id = node_id
        self.preferred_until_ms = until_ms

    def prefer_leader(self) -> None:
        self.preferred_id = -1
