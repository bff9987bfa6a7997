"""Error codes as clients expect them: by the version of the request, and by what failed.

Older versions of the requests have no code for "fenced" or "abortable" and get the closest one they
know. A failed append to the coordinator's partition is reported as a coordinator error, so that
clients find the coordinator again or retry.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from barnabas.model.error_codes import ErrorCode

INIT_KNOWS_FENCED: Final = 4
"""From this version of InitProducerId on, clients know PRODUCER_FENCED."""

OTHERS_KNOW_FENCED: Final = 2
"""The same for AddPartitionsToTxn, AddOffsetsToTxn and EndTxn."""

VERIFY_KNOWS_ABORTABLE: Final = 5
"""From this version of AddPartitionsToTxn on, brokers know TRANSACTION_ABORTABLE."""

_APPEND_ERRORS: Final[Mapping[ErrorCode, ErrorCode]] = MappingProxyType(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
        ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
        ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


def fenced_in_words_of(version: int, knows_fenced: int, code: ErrorCode) -> ErrorCode:
    """Return the code, with "fenced" translated for the request's version."""
    if code is ErrorCode.PRODUCER_FENCED and version < knows_fenced:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def not_in_transaction(version: int) -> ErrorCode:
    """Return the error for a partition that is not part of the transaction."""
    if version < VERIFY_KNOWS_ABORTABLE:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.TRANSACTION_ABORTABLE


def append_failed(error: ErrorCode) -> ErrorCode:
    """Return the error for a failed append to the coordinator's partition."""
    return _APPEND_ERRORS.get(error, error)
