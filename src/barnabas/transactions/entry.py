"""A transactional id in memory: what is committed, what is being written, which markers miss."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.transactions.outcome import MarkerRequest
from barnabas.transactions.transaction import Transaction

_TO_BE_SENT: Final = 0
"""Stands for the attempt of a marker that failed and was not sent again yet; real ones begin at 1.
"""

_DONE: Final = frozenset(
    {
        ErrorCode.NONE,
        # A partition in a format without transactions holds nothing of this one.
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
_FENCED: Final = frozenset(
    {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED}
)


class Progress(Enum):
    """What reported markers mean for their transaction."""

    NOTHING = auto()
    """Others are still on their way, or the report is about an earlier attempt."""
    FAILED = auto()
    """Some must be sent again."""
    FENCED = auto()
    """A newer coordinator was here: the rest is that one's business."""
    DONE = auto()
    """That was the last one."""


class Entry:
    """One transactional id of a coordinator."""

    __slots__ = ("_awaited", "current", "fenced", "pending", "transactional_id")

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.current: Transaction | None = None
        self.pending: Transaction | None = None
        self.fenced = False
        # Partitions without a reported marker, and the attempt that is to bring it.
        self._awaited: dict[TopicPartition, int] = {}

    @property
    def is_finishing(self) -> bool:
        """Tell whether the end is decided, and this coordinator is to bring it about."""
        return self.current is not None and self.current.state.is_decided and not self.fenced

    @property
    def awaits_markers(self) -> bool:
        """Tell whether a partition's marker is missing."""
        return bool(self._awaited)

    def await_all(self) -> None:
        """Wait for the markers of all partitions, none of which is sent yet."""
        if self.current is not None:
            self._awaited = dict.fromkeys(sorted(self.current.partitions), _TO_BE_SENT)

    def sent(self, marker: MarkerRequest) -> None:
        """Wait for these markers."""
        self._awaited.update(dict.fromkeys(marker.partitions, marker.attempt))

    def reported(
        self, marker: MarkerRequest, errors: Mapping[TopicPartition, ErrorCode]
    ) -> Progress:
        """Note what became of markers.

        Whatever goes wrong, short of being fenced, is to be tried again: a decided transaction must
        not stay open.
        """
        news = [p for p in errors if self._awaited.get(p) == marker.attempt]
        for partition in news:
            if errors[partition] in _DONE:
                del self._awaited[partition]
            else:
                self._awaited[partition] = _TO_BE_SENT
                self.fenced = self.fenced or errors[partition] in _FENCED
        if not news:
            return Progress.NOTHING
        if self.fenced:
            return Progress.FENCED
        if not self._awaited:
            return Progress.DONE
        return Progress.FAILED if self.unsent() else Progress.NOTHING

    def unsent(self) -> list[TopicPartition]:
        """Return the partitions whose marker must be sent again."""
        return [p for p, attempt in self._awaited.items() if attempt == _TO_BE_SENT]
