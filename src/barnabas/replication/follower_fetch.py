"""The follower's side: what to fetch from the leader next, and how to handle the response.

A follower's log is its only state. It fetches from its log end with the epoch of its last batch; a
leader whose log has diverged returns where, instead of records. One `FollowerFetch` serves the
partitions that one fetcher follows on one source broker.

Appending happens here, immediately. What takes longer (truncating the log, asking the leader for
its bounds) is returned as a step for the caller, and the partition is paused until `resume`.

Most partitions are idle most of the time, so each turn of the fetcher looks only at those to which
something happened. Now and then it looks at all, since the start of a log may move without notice.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from barnabas.log.partition_log import PartitionLog
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_EPOCH, NO_OFFSET, TopicPartition, Uuid
from barnabas.replication.partition import Partition
from barnabas.wire.messages.fetch import PartitionData

LOOK_MS = 3000
"""How often all partitions are looked at again."""

FIRST_PAUSE_MS = 10
NOT_HEARD_YET = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""The controller notifies all replicas at once, and a follower may learn of its leader before the
leader does: it retries after a moment, then after twice as long. Until it has fetched, nothing that
the new leader appends is safe, and its clients wait.
"""


class Wanted(NamedTuple):
    """One partition of a fetch."""

    key: TopicPartition
    topic_id: Uuid
    leader_epoch: int
    offset: int
    last_fetched_epoch: int
    log_start_offset: int


class Action(Enum):
    """What a response requires of the follower."""

    NOTHING = "the response was empty"
    DROPPED = "the response is outdated, but its leader counts it as delivered"
    APPENDED = "records were appended"
    TRUNCATE = "the log must be truncated to an offset before the next fetch"
    RESTART = "the log must be emptied and restarted at an offset"
    FIND_BOUNDS = "the offset is outside the leader's log: its bounds must be requested"
    RETRY = "the leader cannot respond now: retry after a pause"
    WAIT = "the leader has another epoch: wait for the controller"


class Step(NamedTuple):
    """What a response did, or what the caller must do next."""

    action: Action
    offset: int = -1
    code: ErrorCode = ErrorCode.NONE


_NOTHING = Step(Action.NOTHING)
_DROPPED = Step(Action.DROPPED)
_APPENDED = Step(Action.APPENDED)


class _Followed:
    """One partition, and the state of fetching it."""

    __slots__ = ("held", "lag", "not_before_ms", "partition", "pause_ms", "wanted")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.wanted: Wanted | None = None
        self.not_before_ms = 0
        self.pause_ms = FIRST_PAUSE_MS
        """The next pause for a leader that does not know its role yet."""
        self.held = False
        self.lag = 0
        """How far the log was behind the leader's high watermark after the last response."""


class FollowerFetch:
    """The partitions that one fetcher follows on one source broker."""

    def __init__(self, backoff_ms: int) -> None:
        self._backoff_ms = backoff_ms
        self._followed: dict[TopicPartition, _Followed] = {}
        self._touched: dict[TopicPartition, None] = {}
        self._looked_ms = 0

    def __len__(self) -> int:
        return len(self._followed)

    def __contains__(self, key: TopicPartition) -> bool:
        return key in self._followed

    def follow(self, partition: Partition) -> Step:
        """Begin to follow, or continue in a new epoch; the step may require a truncation first.

        Without epochs there is nothing to compare: only records below the watermark are certain.
        """
        followed = _Followed(partition)
        self._followed[partition.topic_partition] = followed
        self._touched[partition.topic_partition] = None
        log = partition.log
        if log.leader_epochs.latest == NO_EPOCH and log.high_watermark < log.log_end_offset:
            followed.held = True
            return Step(Action.TRUNCATE, log.high_watermark)
        return _NOTHING

    def lags(self) -> list[tuple[TopicPartition, int]]:
        """Return by how many records each partition is behind its leader's high watermark."""
        return [(key, followed.lag) for key, followed in self._followed.items()]

    def forget(self, key: TopicPartition) -> None:
        """Stop following a partition."""
        if self._followed.pop(key, None) is not None:
            self._touched[key] = None

    def changes(self, now_ms: int) -> dict[TopicPartition, Wanted | None]:
        """Return what to fetch from now on of the partitions that may have changed; None: nothing.

        The others are fetched as before.
        """
        if now_ms - self._looked_ms >= LOOK_MS:
            self._looked_ms = now_ms
            self._touch_all()
        touched, self._touched = self._touched, {}
        return {key: self._wanted(key, now_ms) for key in touched}

    def _wanted(self, key: TopicPartition, now_ms: int) -> Wanted | None:
        followed = self._followed.get(key)
        if followed is None or followed.held:
            return None
        if followed.not_before_ms > now_ms:
            self._touched[key] = None  # only time changes it
            return None
        partition = followed.partition
        log = partition.log
        followed.wanted = Wanted(
            key,
            partition.topic_id,
            partition.leader_epoch,
            log.log_end_offset,
            log.leader_epochs.latest,
            log.log_start_offset,
        )
        return followed.wanted

    def _touch_all(self) -> None:
        self._touched.update(dict.fromkeys(self._followed))

    def next_ready_ms(self) -> int | None:
        """Return when the next partition may be fetched; None while all are paused or removed."""
        return min((f.not_before_ms for f in self._followed.values() if not f.held), default=None)

    def patience_ms(self, now_ms: int) -> int | None:
        """Return how long a fetch of the others may wait; None: no limit.

        A paused partition must be fetched again right after its pause.
        """
        pauses = [
            followed.not_before_ms - now_ms
            for key in self._touched
            if (followed := self._followed.get(key)) is not None and not followed.held
        ]
        return max(min(pauses), 0) if pauses else None

    def take(self, key: TopicPartition, data: PartitionData, now_ms: int, wall_ms: int) -> Step:
        """Handle the response for one partition; raises what its log raises.

        A response for an offset or epoch other than the current one is outdated.
        """
        followed = self._followed.get(key)
        if followed is None or followed.held or followed.wanted is None:
            return _DROPPED
        self._touched[key] = None
        partition, wanted = followed.partition, followed.wanted
        log = partition.log
        if wanted.leader_epoch != partition.leader_epoch or wanted.offset != log.log_end_offset:
            return _DROPPED
        if data.error_code:
            return self._failed(followed, ErrorCode.of(data.error_code), now_ms)
        followed.pause_ms = FIRST_PAUSE_MS
        if data.diverging_epoch is not None:
            followed.held = True
            diverging = data.diverging_epoch
            offset = truncation_offset(log, diverging.epoch, diverging.end_offset)
            return Step(Action.TRUNCATE, offset)
        records = data.records if data.records is not None else b""
        appended = partition.append_from_leader(
            records, data.high_watermark, data.log_start_offset, wall_ms
        )
        followed.lag = max(data.high_watermark - log.log_end_offset, 0)
        return _APPENDED if appended else _NOTHING

    def _failed(self, followed: _Followed, code: ErrorCode, now_ms: int) -> Step:
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            followed.held = True
            return Step(Action.FIND_BOUNDS, code=code)
        if code is ErrorCode.FENCED_LEADER_EPOCH:
            followed.held = True
            return Step(Action.WAIT, code=code)
        pause_ms = self._backoff_ms
        if code in NOT_HEARD_YET:
            pause_ms = min(pause_ms, followed.pause_ms)
            followed.pause_ms = min(2 * followed.pause_ms, self._backoff_ms)
        followed.not_before_ms = now_ms + pause_ms
        return Step(Action.RETRY, code=code)

    def bounds_found(self, key: TopicPartition, leader_start: int, leader_end: int) -> Step:
        """Return how to get back into the leader's log: truncate to its end, or restart."""
        followed = self._followed.get(key)
        if followed is None:
            return _NOTHING
        log = followed.partition.log
        if leader_end < log.log_end_offset:
            return Step(Action.TRUNCATE, leader_end)
        if leader_start > log.log_end_offset:
            return Step(Action.RESTART, leader_start)
        followed.held = False  # the leader's log has changed meanwhile
        self._touched[key] = None
        return _NOTHING

    def hold(self, key: TopicPartition) -> None:
        """Pause a partition until `resume`: its log must be flushed first."""
        followed = self._followed.get(key)
        if followed is not None:
            followed.held = True
            self._touched[key] = None

    def resume(self, key: TopicPartition, now_ms: int, *, after_pause: bool = False) -> None:
        """Fetch a partition again after its step was taken, or failed."""
        followed = self._followed.get(key)
        if followed is not None:
            followed.held = False
            followed.not_before_ms = now_ms + self._backoff_ms if after_pause else 0
            self._touched[key] = None

    def hurry(self) -> None:
        """The source is reachable again: fetch what waited for it immediately."""
        for followed in self._followed.values():
            followed.not_before_ms = 0
        self._touch_all()

    def back_off(self, now_ms: int) -> None:
        """The source did not respond: pause all its partitions for a while."""
        for followed in self._followed.values():
            followed.not_before_ms = max(followed.not_before_ms, now_ms + self._backoff_ms)
        self._touch_all()


def truncation_offset(log: PartitionLog, epoch: int, end_offset: int) -> int:
    """Return where to truncate `log`, whose leader says that `epoch` ends at `end_offset`.

    The leader returns the end of the greatest epoch that it knows at or below the follower's last
    one. What the follower has beyond the common part was never acknowledged.

    If the follower does not know the leader's epoch, it truncates to the end of its next lower one;
    its next fetch then carries that epoch, and the leader responds again if need be.
    """
    log_end = log.log_end_offset
    if end_offset == NO_OFFSET:
        return min(log.high_watermark, log_end)
    if epoch == NO_EPOCH:
        return min(end_offset, log_end)
    own_epoch, own_end = log.leader_epochs.end_offset_of(epoch, log_end)
    if own_end == NO_OFFSET:
        return min(end_offset, log_end)
    if own_epoch != epoch:
        return min(own_end, log_end)
    return min(end_offset, own_end, log_end)
