"""Which failures another session may do better with, and which are final."""

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
"""What ends a transaction and not the mirror: the next session begins with a new producer."""


def is_fenced(failure: BarnabasError) -> bool:
    """Tell whether another producer of the same name has taken over."""
    return isinstance(failure, RequestError) and failure.code in FENCED


def is_passing(failure: BarnabasError) -> bool:
    """Tell whether another session may do better."""
    if isinstance(failure, RequestError):
        return failure.retriable or failure.code in LOST_TRANSACTION
    return failure.retriable or isinstance(failure, TransactionAbortedError)


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure on its way from another process."""

    text: str
    passing: bool
    fenced: bool

    @classmethod
    def of(cls, failure: BarnabasError) -> Failure:
        """Describe an exception."""
        code = f" ({failure.code.name})" if isinstance(failure, RequestError) else ""
        text = "; ".join([f"{failure}{code}", *getattr(failure, "__notes__", ())])
        return cls(text, is_passing(failure), is_fenced(failure))
