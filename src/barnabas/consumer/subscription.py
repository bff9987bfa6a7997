"""What a consumer reads, and its positions: topics, partitions, offsets. A plain object.

A consumer is subscribed to topics by name or by pattern (then its group assigns partitions), or it
was assigned partitions manually; never both. Each assigned partition has an `Assigned` state.

One side at a time changes any of this: the caller of the consumer (in a blocking consumer, another
thread than the network's). The network side only reads, so the table of partitions is replaced
rather than changed, and a state that moves to another offset gets a new `version`: whatever was
fetched for an older version, or for a partition that was given up, is void.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum

from barnabas.consumer.group.callbacks import ConsumerRebalanceListener
from barnabas.consumer.interceptors import Interceptors
from barnabas.consumer.reset import ResetPolicy
from barnabas.errors import IllegalStateError, NoOffsetForPartitionError
from barnabas.metadata.topic_names import illegal_name
from barnabas.model.ids import NO_EPOCH, TopicPartition
from barnabas.structs import OffsetAndMetadata


class Mode(Enum):
    """How partitions are assigned to this consumer."""

    NONE = "idle"
    TOPICS = "subscribed to topics"
    PATTERN = "subscribed to a pattern"
    ASSIGNED = "assigned partitions manually"


class Assigned:
    """One assigned partition: the user's position, and the last known ends of the log."""

    __slots__ = (
        "committed",
        "fetched_ms",
        "high_watermark",
        "last_stable_offset",
        "leader_epoch",
        "log_start_offset",
        "owned",
        "partition",
        "paused",
        "position",
        "reset",
        "version",
    )

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.owned = True
        self.paused = False
        self.position: int | None = None  # the offset of the next record for the user
        self.leader_epoch = NO_EPOCH  # of the record before the position, -1 if unknown
        self.reset: ResetPolicy | None = None  # the pending reset, if any
        self.version = 0
        self.committed: OffsetAndMetadata | None = None
        self.high_watermark: int | None = None
        self.last_stable_offset: int | None = None
        self.log_start_offset: int | None = None
        self.fetched_ms: float | None = None

    def __repr__(self) -> str:
        where = f"resetting to {self.reset}" if self.reset is not None else f"at {self.position}"
        return f"<{self.partition} {where}{', paused' if self.paused else ''}>"

    def lag(self, *, committed: bool) -> int | None:
        """Return the lag behind the last readable offset, if known."""
        end = self.last_stable_offset if committed else self.high_watermark
        if end is None or end < 0 or self.position is None:
            return None
        return max(0, end - self.position)

    def lead(self) -> int | None:
        """Return how far the position is from the start of the log, if known."""
        if self.log_start_offset is None or self.log_start_offset < 0 or self.position is None:
            return None
        return max(0, self.position - self.log_start_offset)

    def seek(self, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """Continue from this offset; what was fetched from elsewhere is dropped."""
        self.position = offset
        self.leader_epoch = leader_epoch
        self.reset = None
        self.version += 1

    def request_reset(self, policy: ResetPolicy) -> None:
        """Request a position by policy; until it is found there is none."""
        self.position = None
        self.leader_epoch = NO_EPOCH
        self.reset = policy
        self.version += 1

    def give_up(self) -> None:
        """Mark the partition as no longer assigned."""
        self.owned = False
        self.version += 1


class Subscription:
    """Topics, pattern or partitions of one consumer, and the state of each assigned partition."""

    def __init__(
        self, policy: ResetPolicy | None = None, interceptors: Interceptors | None = None
    ) -> None:
        """Start empty; `policy` is auto.offset.reset (by default latest)."""
        self.policy = policy or ResetPolicy.LATEST
        self.interceptors = interceptors or Interceptors()
        self.mode = Mode.NONE
        self.listener: ConsumerRebalanceListener | None = None
        self.pattern: re.Pattern[str] | None = None
        self._topics: tuple[str, ...] = ()
        self._assigned: dict[TopicPartition, Assigned] = {}

    # Subscription.

    @property
    def topics(self) -> tuple[str, ...]:
        """The subscribed topics: as named, or those that the pattern matched last."""
        return self._topics

    @property
    def by_group(self) -> bool:
        """Whether a group assigns the partitions."""
        return self.mode in (Mode.TOPICS, Mode.PATTERN)

    def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | re.Pattern[str] | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Subscribe to topics or to a pattern, replacing the previous subscription."""
        if listener is not None and not isinstance(listener, ConsumerRebalanceListener):
            raise TypeError(f"listener {listener!r} is not a ConsumerRebalanceListener")
        if isinstance(topics, str) or not isinstance(topics, (Sequence, set, frozenset)):
            raise TypeError(f"topics {topics!r}: must be a list of topic names")
        if pattern is not None and topics:
            raise IllegalStateError("subscribe to topics or to a pattern, not to both")
        if pattern is not None:
            compiled = _compile(pattern)
            self._choose(Mode.PATTERN)
            self.pattern, self._topics = compiled, ()
        elif topics:
            names = tuple(dict.fromkeys(_checked_name(topic) for topic in topics))
            self._choose(Mode.TOPICS)
            self._topics = names
        else:
            raise ValueError("subscribe needs topics or a pattern")
        self.listener = listener

    def match(self, names: Iterable[str]) -> bool:
        """Match the pattern with these topics; return whether the result changed."""
        assert self.pattern is not None
        matched = tuple(sorted(name for name in names if self.pattern.match(name)))
        changed = matched != self._topics
        self._topics = matched
        return changed

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions and no others; those that stay keep their positions."""
        wanted = list(dict.fromkeys(_checked_partition(partition) for partition in partitions))
        self._choose(Mode.ASSIGNED)
        self._replace(wanted)

    def unsubscribe(self) -> None:
        """Stop reading."""
        self._replace(())
        self.mode, self.pattern, self.listener, self._topics = Mode.NONE, None, None, ()

    # Assignment by a group.

    def assign_from_group(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Own these partitions and no others; return the new ones. The rest keep their state."""
        assert self.by_group, f"a group assigns to a consumer that is {self.mode.value}"
        before = self._assigned
        self._replace(dict.fromkeys(partitions))
        return [partition for partition in self._assigned if partition not in before]

    def revoke(self, partitions: Iterable[TopicPartition]) -> None:
        """Give up these partitions."""
        gone = set(partitions)
        self._replace([partition for partition in self._assigned if partition not in gone])

    # Assigned partitions.

    @property
    def assigned(self) -> dict[TopicPartition, Assigned]:
        """The table of states. It is replaced, never changed: take it once and iterate over it."""
        return self._assigned

    def assigned_partitions(self) -> set[TopicPartition]:
        """Return the assigned partitions."""
        return set(self._assigned)

    def is_assigned(self, partition: TopicPartition) -> bool:
        return partition in self._assigned

    def state(self, partition: TopicPartition) -> Assigned:
        """Return the state of a partition; raise IllegalStateError if it is not assigned."""
        try:
            return self._assigned[partition]
        except KeyError:
            raise IllegalStateError(f"partition {partition} is not assigned") from None

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """Continue from this offset in a partition."""
        self.state(partition).seek(offset, leader_epoch)

    def request_reset(self, partition: TopicPartition, policy: ResetPolicy | None = None) -> None:
        """Request a new position by this policy, or by auto.offset.reset."""
        state = self.state(partition)
        policy = policy or self.policy
        if policy.gives_up:
            failure = NoOffsetForPartitionError(
                f"{partition} has no valid position, and auto.offset.reset is none"
            )
            failure.partition = partition
            raise failure
        state.request_reset(policy)

    def pause(self, partition: TopicPartition) -> None:
        self.state(partition).paused = True

    def resume(self, partition: TopicPartition) -> None:
        self.state(partition).paused = False

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions."""
        return {state.partition for state in self._assigned.values() if state.paused}

    def missing_positions(self) -> list[TopicPartition]:
        """Return the partitions whose position was not requested yet: committed ones first."""
        return [
            state.partition
            for state in self._assigned.values()
            if state.position is None and state.reset is None
        ]

    def all_consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what a commit without arguments commits: the position of every partition."""
        return {
            state.partition: OffsetAndMetadata(state.position, "", state.leader_epoch)
            for state in self._assigned.values()
            if state.position is not None
        }

    def _choose(self, mode: Mode) -> None:
        if self.mode not in (Mode.NONE, mode):
            raise IllegalStateError(
                f"this consumer is {self.mode.value} and cannot also be {mode.value}: call "
                "unsubscribe() first"
            )
        self.mode = mode

    def _replace(self, partitions: Iterable[TopicPartition]) -> None:
        before = self._assigned
        self._assigned = {
            partition: before.get(partition) or Assigned(partition) for partition in partitions
        }
        for partition, state in before.items():
            if partition not in self._assigned:
                state.give_up()


def _compile(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as failure:
        raise ValueError(f"{pattern!r} is not a valid pattern: {failure}") from failure


def _checked_name(topic: object) -> str:
    if not isinstance(topic, str):
        raise TypeError(f"topic {topic!r} must be a str, not {type(topic).__name__}")
    reason = illegal_name(topic)
    if reason is not None:
        raise ValueError(reason)
    return topic


def _checked_partition(partition: object) -> TopicPartition:
    # kafka-python's own TopicPartition is accepted, too: it is such a pair.
    if not isinstance(partition, tuple) or len(partition) != 2:
        raise TypeError(f"partition {partition!r} is not a TopicPartition")
    topic, index = partition
    if not isinstance(index, int) or isinstance(index, bool):
        raise TypeError(f"partition {partition!r}: {index!r} must be a whole number")
    if index < 0:
        raise ValueError(f"partition {partition!r}: {index} must be at least 0")
    return TopicPartition(_checked_name(topic), index)
