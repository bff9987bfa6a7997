"""Events that the network side reports to the user's side about one partition, besides records.

An event is for one version of the partition's state; once the user has moved, it is void. `apply`
is called on the user's side: it changes the state, or raises an error for the user. An event that
raised stays and raises again until the user moves (a seek, another assignment).
"""

from __future__ import annotations

from barnabas.consumer.subscription import Assigned, Subscription
from barnabas.errors import LogTruncationError, OffsetOutOfRangeError
from barnabas.model.ids import NO_EPOCH
from barnabas.structs import OffsetAndMetadata


class PositionEvent:
    """An event about the position in a partition; the base of the others."""

    __slots__ = ("state", "version")

    def __init__(self, state: Assigned, version: int) -> None:
        self.state = state
        self.version = version

    def apply(self, subscription: Subscription) -> None:
        """Change the state, or raise."""


class PositionFound(PositionEvent):
    """A position was found."""

    __slots__ = ("leader_epoch", "offset")

    def __init__(
        self, state: Assigned, version: int, offset: int, leader_epoch: int = NO_EPOCH
    ) -> None:
        super().__init__(state, version)
        self.offset = offset
        self.leader_epoch = leader_epoch

    def apply(self, subscription: Subscription) -> None:
        self.state.seek(self.offset, self.leader_epoch)


class NoCommittedOffset(PositionEvent):
    """Nothing was committed: auto.offset.reset decides."""

    __slots__ = ()

    def apply(self, subscription: Subscription) -> None:
        subscription.request_reset(self.state.partition)


class OffsetOutOfRange(PositionEvent):
    """The fetch offset is after the end of the log, or before its start."""

    __slots__ = ("offset",)

    def __init__(self, state: Assigned, version: int, offset: int) -> None:
        super().__init__(state, version)
        self.offset = offset

    def apply(self, subscription: Subscription) -> None:
        if subscription.policy.gives_up:
            # Programs written for aiokafka look for the partitions in the first argument.
            raise OffsetOutOfRangeError({self.state.partition: self.offset})  # type: ignore[arg-type]
        self.state.request_reset(subscription.policy)


class LogTruncated(PositionEvent):
    """The log was truncated: up to `offset` it matches what the user has read (None: unknown)."""

    __slots__ = ("leader_epoch", "offset")

    def __init__(
        self, state: Assigned, version: int, offset: int | None, leader_epoch: int
    ) -> None:
        super().__init__(state, version)
        self.offset = offset
        self.leader_epoch = leader_epoch

    def apply(self, subscription: Subscription) -> None:
        state = self.state
        assert state.position is not None
        if self.offset is not None and state.position <= self.offset:
            # Only what was read ahead is gone from the log: it is fetched again.
            state.seek(state.position, state.leader_epoch)
        elif subscription.policy.gives_up:
            agreed = None
            if self.offset is not None:
                agreed = OffsetAndMetadata(self.offset, "", self.leader_epoch)
            raise LogTruncationError({state.partition: agreed})
        elif self.offset is None:
            state.request_reset(subscription.policy)
        else:
            state.seek(self.offset, self.leader_epoch)


class PartitionFailed(PositionEvent):
    """A failure that no retry resolves."""

    __slots__ = ("failure",)

    def __init__(self, state: Assigned, version: int, failure: Exception) -> None:
        super().__init__(state, version)
        self.failure = failure

    def apply(self, subscription: Subscription) -> None:
        raise self.failure
