"""What a member does about each error code of each answer that a coordinator gives.

One table per request, so that a reader can compare them with the protocol, and a test can walk
through them. A code that is in no table is worth another attempt if it is retriable, and is raised
otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeAlias

from barnabas.model.error_codes import ErrorCode


class Remedy(Enum):
    """What an answer calls for."""

    NONE = "go on"
    RETRY = "send the same again, after a pause"
    FIND = "look for the coordinator again, then send the same"
    TAKE_ID = "join with the member id that the answer gives"
    REJOIN = "join again as the same member: the group rebalances"
    RESET = "the generation is over: what was owned is lost; join again as the same member"
    FORGET = "the group does not know the member: what was owned is lost; join as a new one"
    FAIL = "tell the user: the same would fail again"


Table: TypeAlias = Mapping[ErrorCode, Remedy]

_FIND = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Remedy.FIND,
    ErrorCode.NOT_COORDINATOR: Remedy.FIND,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Remedy.RETRY,
}

_REFUSED = {
    ErrorCode.FENCED_INSTANCE_ID: Remedy.FAIL,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: Remedy.FAIL,
    ErrorCode.INVALID_GROUP_ID: Remedy.FAIL,
}

JOIN: Final[Table] = MappingProxyType(
    {
        **_FIND,
        **_REFUSED,
        ErrorCode.MEMBER_ID_REQUIRED: Remedy.TAKE_ID,
        ErrorCode.REBALANCE_IN_PROGRESS: Remedy.RETRY,
        ErrorCode.UNKNOWN_MEMBER_ID: Remedy.FORGET,
        ErrorCode.ILLEGAL_GENERATION: Remedy.RESET,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL: Remedy.FAIL,
        ErrorCode.INVALID_SESSION_TIMEOUT: Remedy.FAIL,
        ErrorCode.GROUP_MAX_SIZE_REACHED: Remedy.FAIL,
        ErrorCode.UNSUPPORTED_VERSION: Remedy.FAIL,
    }
)

SYNC: Final[Table] = MappingProxyType(
    {
        # The coordinator may have moved or forgotten the round: only a new join can tell.
        ErrorCode.COORDINATOR_NOT_AVAILABLE: Remedy.FIND,
        ErrorCode.NOT_COORDINATOR: Remedy.FIND,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Remedy.REJOIN,
        **_REFUSED,
        ErrorCode.REBALANCE_IN_PROGRESS: Remedy.REJOIN,
        ErrorCode.UNKNOWN_MEMBER_ID: Remedy.FORGET,
        ErrorCode.ILLEGAL_GENERATION: Remedy.RESET,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL: Remedy.FAIL,
    }
)

HEARTBEAT: Final[Table] = MappingProxyType(
    {
        **_FIND,
        **_REFUSED,
        ErrorCode.REBALANCE_IN_PROGRESS: Remedy.REJOIN,
        ErrorCode.UNKNOWN_MEMBER_ID: Remedy.FORGET,
        ErrorCode.ILLEGAL_GENERATION: Remedy.RESET,
    }
)

COMMIT: Final[Table] = MappingProxyType(
    {
        **_FIND,
        **_REFUSED,
        ErrorCode.REQUEST_TIMED_OUT: Remedy.FIND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Remedy.RETRY,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: Remedy.FAIL,
        ErrorCode.OFFSET_METADATA_TOO_LARGE: Remedy.FAIL,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE: Remedy.FAIL,
        ErrorCode.REBALANCE_IN_PROGRESS: Remedy.REJOIN,
        ErrorCode.UNKNOWN_MEMBER_ID: Remedy.FORGET,
        ErrorCode.ILLEGAL_GENERATION: Remedy.RESET,
        # KIP-848: the commit crossed a heartbeat that brought a new epoch.
        ErrorCode.STALE_MEMBER_EPOCH: Remedy.RETRY,
        ErrorCode.FENCED_MEMBER_EPOCH: Remedy.RESET,
        ErrorCode.UNSUPPORTED_VERSION: Remedy.FAIL,
        ErrorCode.GROUP_ID_NOT_FOUND: Remedy.FORGET,
    }
)

FETCH: Final[Table] = MappingProxyType(
    {
        **_FIND,
        **_REFUSED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT: Remedy.RETRY,
        ErrorCode.STALE_MEMBER_EPOCH: Remedy.RETRY,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Remedy.RETRY,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: Remedy.FAIL,
        ErrorCode.UNKNOWN_MEMBER_ID: Remedy.FORGET,
    }
)

CONSUMER_HEARTBEAT: Final[Table] = MappingProxyType(
    {
        **_FIND,
        **_REFUSED,
        ErrorCode.UNKNOWN_MEMBER_ID: Remedy.FORGET,
        ErrorCode.FENCED_MEMBER_EPOCH: Remedy.RESET,
        ErrorCode.UNRELEASED_INSTANCE_ID: Remedy.FAIL,
        ErrorCode.GROUP_MAX_SIZE_REACHED: Remedy.FAIL,
        ErrorCode.UNSUPPORTED_ASSIGNOR: Remedy.FAIL,
        ErrorCode.INVALID_REGULAR_EXPRESSION: Remedy.FAIL,
        ErrorCode.INVALID_REQUEST: Remedy.FAIL,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: Remedy.FAIL,
        ErrorCode.UNSUPPORTED_VERSION: Remedy.FAIL,
        ErrorCode.GROUP_ID_NOT_FOUND: Remedy.FAIL,
    }
)


def remedy(table: Table, code: ErrorCode) -> Remedy:
    """Return what a code in an answer calls for."""
    if code is ErrorCode.NONE:
        return Remedy.NONE
    if code in table:
        return table[code]
    return Remedy.RETRY if code.retriable else Remedy.FAIL
