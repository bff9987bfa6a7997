"""Appends that a caller waits for: until each is committed, has failed, or the deadline passes.

An append is committed when the high watermark has passed it. With acks=1 it is also settled once it
was flushed here, whatever followers do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from barnabas.broker.partitions.expirations import Expirations
from barnabas.model.error_codes import ErrorCode
from barnabas.replication.partition import Partition
from barnabas.timing.purgatory import DelayedOperation

ALL_REPLICAS = -1
"""The acks of an append that every in-sync replica must have."""

Token = TypeVar("Token")

Wait = tuple[Partition, int, Token]
"""A partition, the offset up to which it must be committed, and the caller's token."""

Settle = Callable[[Partition, Token, ErrorCode], None]
"""Records how one append ended; it must not send a response, since others may still wait."""


class DelayedAppend(DelayedOperation, Generic[Token]):
    """Calls `done` when every append is settled, and `settle` for each of them.

    If `is_stale` is given and returns True, it is done at once, and the rest stays unsettled.
    """

    __slots__ = ("_acks", "_done", "_expirations", "_is_stale", "_settle", "_waits")

    def __init__(
        self,
        waits: list[Wait[Token]],
        done: Callable[[], None],
        settle: Settle[Token] | None,
        acks: int,
        is_stale: Callable[[], bool] | None,
        expirations: Expirations,
    ) -> None:
        super().__init__()
        self._waits = waits
        self._done = done
        self._settle = settle
        self._acks = acks
        self._is_stale = is_stale
        self._expirations = expirations

    def try_complete(self) -> bool:
        """Settle what is committed or has failed; return whether nothing is left to wait for."""
        if self._is_stale is not None and self._is_stale():
            return True
        still: list[Wait[Token]] = []
        for wait in self._waits:
            partition, required_offset, token = wait
            if not partition.is_leader:
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            elif partition.log.high_watermark >= required_offset or (
                self._acks != ALL_REPLICAS and partition.log.recovery_point >= required_offset
            ):
                code = ErrorCode.NONE
            else:
                still.append(wait)
                continue
            if self._settle is not None:
                self._settle(partition, token, code)
        self._waits = still
        return not still

    def on_expire(self) -> None:
        """Settle the rest: appended, but not known to be committed."""
        for partition, _, _ in self._waits:
            self._expirations.append(partition.topic_partition)
        if self._settle is not None:
            for partition, _, token in self._waits:
                self._settle(partition, token, ErrorCode.REQUEST_TIMED_OUT)

    def on_complete(self) -> None:
        """Call `done`."""
        self._done()
