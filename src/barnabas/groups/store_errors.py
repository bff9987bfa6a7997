"""The errors that clients of a group get when its records cannot be written.

The log's errors are about topics, replicas and sizes; a client only knows coordinators. Most
failures mean that it should find the coordinator again, or retry later.
"""

from __future__ import annotations

from typing import Final

from barnabas.model.error_codes import ErrorCode

_COMMON: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
_TOO_LARGE: Final = (
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_FETCH_SIZE,
)


def group_error(code: ErrorCode) -> ErrorCode:
    """Translate the log's error for a member of a group."""
    if code in _TOO_LARGE:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    if code is ErrorCode.REQUEST_TIMED_OUT:
        return ErrorCode.REBALANCE_IN_PROGRESS  # it rejoins, and the group is written again
    return _COMMON.get(code, code)


def offset_error(code: ErrorCode) -> ErrorCode:
    """Translate the log's error for a client that commits or deletes offsets."""
    return ErrorCode.INVALID_COMMIT_OFFSET_SIZE if code in _TOO_LARGE else _COMMON.get(code, code)
