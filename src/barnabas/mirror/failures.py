"""Which failures the next session may recover from, and which are final."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.client.errors import TransactionAbortedError
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError

FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})

LOST_TRANSACTION = frozenset(
    {
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)
"""Errors that end a transaction, not the mirror: the next session starts a new producer."""


def is_fenced(failure: BarnabasError) -> bool:
    """Return whether another producer with the same transactional id has taken over."""
    return isinstance(failure, RequestError) and failure.code in FENCED


def is_retriable(failure: BarnabasError) -> bool:
    """Return whether the next session may recover from it."""
    if isinstance(failure, RequestError):
        return failure.retriable or failure.code in LOST_TRANSACTION
    return failure.retriable or isinstance(failure, TransactionAbortedError)


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """A failure, as another process reports it."""

    text: str
    retriable: bool
    fenced: bool

    @classmethod
    def of(cls, failure: BarnabasError) -> TaskFailure:
        """Describe an exception."""
        code = f" ({failure.code.name})" if isinstance(failure, RequestError) else ""
        text = "; ".join([f"{failure}{code}", *getattr(failure, "__notes__", ())])
        return cls(text, is_retriable(failure), is_fenced(failure))
