"""The follower's side: what to ask of the leader next, and what its answer asks of us.

A follower's log is all the state there is. It fetches from its own end and tells the epoch of its
last batch; a leader whose log has parted from it says where, instead of sending records. One
`Pull` serves the partitions that one fetcher follows on one source broker.

Appending is done here, at once. What takes longer (cutting the log back, asking the leader for its
bounds) is returned as a step for the caller, and the partition is left alone until `resume`.

Most partitions are at rest most of the time, and each turn of the fetcher is about the others: only
those to which something happened are looked at. Now and then all are, since the start of a log may
move without anybody's telling.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_EPOCH, TopicPartition, Uuid
from barnabas.replication.partition import Partition
from barnabas.replication.truncation import truncation_offset
from barnabas.wire.messages.fetch import PartitionData

LOOK_MS = 3000
"""After this time all partitions are looked at again."""

FIRST_PAUSE_MS = 10
NOT_HEARD_YET = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""The controller tells all replicas at once, and a follower may hear of its leader before that one
does: it asks again after a moment, then after twice as long. Until it has fetched, nothing that the
new leader takes is safe, and its clients wait.
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
    """What an answer asks of the follower."""

    NOTHING = "the answer was empty"
    DROPPED = "the answer came too late to matter, and its leader takes it for told"
    APPENDED = "records were appended"
    TRUNCATE = "the log must be cut back to an offset before the next fetch"
    RESTART = "the log must be emptied, and begin at an offset"
    FIND_BOUNDS = "the offset is outside of the leader's log: its bounds must be asked"
    RETRY = "the leader cannot answer now: it is asked again after a pause"
    WAIT = "the leader is of another epoch: the controller will tell"


class Step(NamedTuple):
    """What an answer did, or what the caller must do next."""

    action: Action
    offset: int = -1
    code: ErrorCode = ErrorCode.NONE


_NOTHING = Step(Action.NOTHING)
_DROPPED = Step(Action.DROPPED)
_APPENDED = Step(Action.APPENDED)


class _Followed:
    """One partition, and how its fetching goes."""

    __slots__ = ("held", "not_before_ms", "partition", "pause_ms", "wanted")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.wanted: Wanted | None = None
        self.not_before_ms = 0
        self.pause_ms = FIRST_PAUSE_MS
        """The next pause for a leader that has not heard of its role."""
        self.held = False


class Pull:
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
        """Begin to follow, or go on in a new epoch; the step may ask for a truncation first.

        Without epochs there is nothing to compare: only what is below the watermark is certain.
        """
        followed = _Followed(partition)
        self._followed[partition.topic_partition] = followed
        self._touched[partition.topic_partition] = None
        log = partition.log
        if log.leader_epochs.latest == NO_EPOCH and log.high_watermark < log.log_end_offset:
            followed.held = True
            return Step(Action.TRUNCATE, log.high_watermark)
        return _NOTHING

    def forget(self, key: TopicPartition) -> None:
        """Follow a partition no longer."""
        if self._followed.pop(key, None) is not None:
            self._touched[key] = None

    def news(self, now_ms: int) -> dict[TopicPartition, Wanted | None]:
        """Return what to fetch from now on of the partitions that may have changed; None: nothing.

        The others are to be fetched as before.
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
            self._touched[key] = None  # only the time changes it
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
        """Return when the next partition may be fetched; None while all are held or gone."""
        return min((f.not_before_ms for f in self._followed.values() if not f.held), default=None)

    def patience_ms(self, now_ms: int) -> int | None:
        """Return how long a fetch of the others may wait; None: as long as it likes.

        A partition that pauses is wanted again after its pause, and no later.
        """
        pauses = [
            followed.not_before_ms - now_ms
            for key in self._touched
            if (followed := self._followed.get(key)) is not None and not followed.held
        ]
        return max(min(pauses), 0) if pauses else None

    def take(self, key: TopicPartition, data: PartitionData, now_ms: int, wall_ms: int) -> Step:
        """Act on the answer for one partition; raises what its log raises.

        An answer to another offset or epoch than the present one is of older times.
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
        if not partition.append_from_leader(
            records, data.high_watermark, data.log_start_offset, wall_ms
        ):
            return _NOTHING
        return _APPENDED

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
        """Say how to come back into the leader's log: cut to its end, or begin at its start."""
        followed = self._followed.get(key)
        if followed is None:
            return _NOTHING
        log = followed.partition.log
        if leader_end < log.log_end_offset:
            return Step(Action.TRUNCATE, leader_end)
        if leader_start > log.log_end_offset:
            return Step(Action.RESTART, leader_start)
        followed.held = False  # the leader's log has moved meanwhile
        self._touched[key] = None
        return _NOTHING

    def hold(self, key: TopicPartition) -> None:
        """Leave a partition alone until `resume`: its log must be flushed first."""
        followed = self._followed.get(key)
        if followed is not None:
            followed.held = True
            self._touched[key] = None

    def resume(self, key: TopicPartition, now_ms: int, *, after_pause: bool = False) -> None:
        """Fetch a partition again whose step was taken, or could not be."""
        followed = self._followed.get(key)
        if followed is not None:
            followed.held = False
            followed.not_before_ms = now_ms + self._backoff_ms if after_pause else 0
            self._touched[key] = None

    def hurry(self) -> None:
        """The source can be reached again: whoever waited for that is asked at once."""
        for followed in self._followed.values():
            followed.not_before_ms = 0
        self._touch_all()

    def back_off(self, now_ms: int) -> None:
        """The source did not answer: none of its partitions is asked for a while."""
        for followed in self._followed.values():
            followed.not_before_ms = max(followed.not_before_ms, now_ms + self._backoff_ms)
        self._touch_all()
