"""A transactional id in memory: its committed state, pending write and missing markers."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.transactions.outcome import MarkerRequest
from barnabas.transactions.transaction import Transaction

_TO_BE_SENT: Final = 0
"""The attempt of a marker that failed and was not sent again yet; real attempts begin at 1.
"""

_DONE: Final = frozenset(
    {
        ErrorCode.NONE,
        # A partition in a format without transactions has no records of this one.
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
_FENCED: Final = frozenset(
    {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED}
)


class Progress(Enum):
    """What marker results mean for their transaction."""

    NOTHING = auto()
    """Others are still in flight, or the result is of an earlier attempt."""
    FAILED = auto()
    """Some must be sent again."""
    FENCED = auto()
    """A newer coordinator has taken over: the rest is up to that one."""
    DONE = auto()
    """That was the last one."""


class TransactionalId:
    """One transactional id of a coordinator."""

    __slots__ = ("_awaited", "current", "fenced", "pending", "transactional_id")

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.current: Transaction | None = None
        self.pending: Transaction | None = None
        self.fenced = False
        # Partitions whose marker is missing, and the current attempt.
        self._awaited: dict[TopicPartition, int] = {}

    @property
    def is_finishing(self) -> bool:
        """Return whether the end is decided and this coordinator must complete it."""
        return self.current is not None and self.current.state.is_decided and not self.fenced

    @property
    def awaits_markers(self) -> bool:
        """Return whether a partition's marker is missing."""
        return bool(self._awaited)

    @property
    def awaited_count(self) -> int:
        """Return how many partitions' markers are missing."""
        return len(self._awaited)

    def await_all(self) -> None:
        """Wait for the markers of all partitions, none of which has been sent."""
        if self.current is not None:
            self._awaited = dict.fromkeys(sorted(self.current.partitions), _TO_BE_SENT)

    def sent(self, marker: MarkerRequest) -> None:
        """Wait for these markers."""
        self._awaited.update(dict.fromkeys(marker.partitions, marker.attempt))

    def reported(
        self, marker: MarkerRequest, errors: Mapping[TopicPartition, ErrorCode]
    ) -> Progress:
        """Record the results of markers.

        Every failure short of being fenced is retried: a decided transaction must not stay open.
        """
        written = [p for p in errors if self._awaited.get(p) == marker.attempt]
        for partition in written:
            if errors[partition] in _DONE:
                del self._awaited[partition]
            else:
                self._awaited[partition] = _TO_BE_SENT
                self.fenced = self.fenced or errors[partition] in _FENCED
        if not written:
            return Progress.NOTHING
        if self.fenced:
            return Progress.FENCED
        if not self._awaited:
            return Progress.DONE
        return Progress.FAILED if self.unsent() else Progress.NOTHING

    def unsent(self) -> list[TopicPartition]:
        """Return the partitions whose marker must be sent again."""
        return [p for p, attempt in self._awaited.items() if attempt == _TO_BE_SENT]
