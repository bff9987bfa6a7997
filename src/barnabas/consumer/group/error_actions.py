"""What a member does about each error code in a coordinator's response, and the user's message.

One table per request, so that a reader can compare them with the protocol, and a test can check
them all. A code that is in no table is retried if it is retriable, and raised otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeAlias

from barnabas.consumer.group.settings import GroupSettings
from barnabas.model.error_codes import ErrorCode
from barnabas.model.request_errors import CodedError, request_error


class ErrorAction(Enum):
    """The action that a response calls for."""

    NONE = "continue"
    RETRY = "retry the request after a back-off"
    FIND = "look up the coordinator again, then retry the request"
    TAKE_ID = "join with the member id in the response"
    REJOIN = "rejoin as the same member: the group rebalances"
    RESET = "the generation has ended: owned partitions are lost; rejoin as the same member"
    FORGET = "the group does not know the member: owned partitions are lost; join as a new one"
    FAIL = "raise: a retry would fail, too"


Table: TypeAlias = Mapping[ErrorCode, ErrorAction]

_FIND = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorAction.FIND,
    ErrorCode.NOT_COORDINATOR: ErrorAction.FIND,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorAction.RETRY,
}

_REFUSED = {
    ErrorCode.FENCED_INSTANCE_ID: ErrorAction.FAIL,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: ErrorAction.FAIL,
    ErrorCode.INVALID_GROUP_ID: ErrorAction.FAIL,
}

JOIN: Final[Table] = MappingProxyType(
    {
        **_FIND,
        **_REFUSED,
        ErrorCode.MEMBER_ID_REQUIRED: ErrorAction.TAKE_ID,
        ErrorCode.REBALANCE_IN_PROGRESS: ErrorAction.RETRY,
        ErrorCode.UNKNOWN_MEMBER_ID: ErrorAction.FORGET,
        ErrorCode.ILLEGAL_GENERATION: ErrorAction.RESET,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL: ErrorAction.FAIL,
        ErrorCode.INVALID_SESSION_TIMEOUT: ErrorAction.FAIL,
        ErrorCode.GROUP_MAX_SIZE_REACHED: ErrorAction.FAIL,
        ErrorCode.UNSUPPORTED_VERSION: ErrorAction.FAIL,
    }
)

SYNC: Final[Table] = MappingProxyType(
    {
        # The coordinator may have moved or forgotten the rebalance: only a new join can tell.
        ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorAction.FIND,
        ErrorCode.NOT_COORDINATOR: ErrorAction.FIND,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorAction.REJOIN,
        **_REFUSED,
        ErrorCode.REBALANCE_IN_PROGRESS: ErrorAction.REJOIN,
        ErrorCode.UNKNOWN_MEMBER_ID: ErrorAction.FORGET,
        ErrorCode.ILLEGAL_GENERATION: ErrorAction.RESET,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL: ErrorAction.FAIL,
    }
)

HEARTBEAT: Final[Table] = MappingProxyType(
    {
        **_FIND,
        **_REFUSED,
        ErrorCode.REBALANCE_IN_PROGRESS: ErrorAction.REJOIN,
        ErrorCode.UNKNOWN_MEMBER_ID: ErrorAction.FORGET,
        ErrorCode.ILLEGAL_GENERATION: ErrorAction.RESET,
    }
)

COMMIT: Final[Table] = MappingProxyType(
    {
        **_FIND,
        **_REFUSED,
        ErrorCode.REQUEST_TIMED_OUT: ErrorAction.FIND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorAction.RETRY,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: ErrorAction.FAIL,
        ErrorCode.OFFSET_METADATA_TOO_LARGE: ErrorAction.FAIL,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE: ErrorAction.FAIL,
        ErrorCode.REBALANCE_IN_PROGRESS: ErrorAction.REJOIN,
        ErrorCode.UNKNOWN_MEMBER_ID: ErrorAction.FORGET,
        ErrorCode.ILLEGAL_GENERATION: ErrorAction.RESET,
        # KIP-848: the commit crossed a heartbeat that brought a new epoch.
        ErrorCode.STALE_MEMBER_EPOCH: ErrorAction.RETRY,
        ErrorCode.FENCED_MEMBER_EPOCH: ErrorAction.RESET,
        ErrorCode.UNSUPPORTED_VERSION: ErrorAction.FAIL,
        ErrorCode.GROUP_ID_NOT_FOUND: ErrorAction.FORGET,
    }
)

FETCH: Final[Table] = MappingProxyType(
    {
        **_FIND,
        **_REFUSED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT: ErrorAction.RETRY,
        ErrorCode.STALE_MEMBER_EPOCH: ErrorAction.RETRY,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorAction.RETRY,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: ErrorAction.FAIL,
        ErrorCode.UNKNOWN_MEMBER_ID: ErrorAction.FORGET,
    }
)

CONSUMER_HEARTBEAT: Final[Table] = MappingProxyType(
    {
        **_FIND,
        **_REFUSED,
        ErrorCode.UNKNOWN_MEMBER_ID: ErrorAction.FORGET,
        ErrorCode.FENCED_MEMBER_EPOCH: ErrorAction.RESET,
        ErrorCode.UNRELEASED_INSTANCE_ID: ErrorAction.FAIL,
        ErrorCode.GROUP_MAX_SIZE_REACHED: ErrorAction.FAIL,
        ErrorCode.UNSUPPORTED_ASSIGNOR: ErrorAction.FAIL,
        ErrorCode.INVALID_REGULAR_EXPRESSION: ErrorAction.FAIL,
        ErrorCode.INVALID_REQUEST: ErrorAction.FAIL,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: ErrorAction.FAIL,
        ErrorCode.UNSUPPORTED_VERSION: ErrorAction.FAIL,
        ErrorCode.GROUP_ID_NOT_FOUND: ErrorAction.FAIL,
    }
)


def action_for(table: Table, code: ErrorCode) -> ErrorAction:
    """Return the action for an error code in a response."""
    if code is ErrorCode.NONE:
        return ErrorAction.NONE
    if code in table:
        return table[code]
    return ErrorAction.RETRY if code.retriable else ErrorAction.FAIL


def refusal(
    code: ErrorCode,
    settings: GroupSettings,
    *,
    strategies: Iterable[str] = (),
    detail: str | None = None,
) -> CodedError:
    """Return the exception for a response; `detail` adds the broker's own message."""
    group = f"group {settings.group_id!r}"
    texts = {
        ErrorCode.FENCED_INSTANCE_ID: (
            f"another consumer has joined {group} with group.instance.id="
            f"{settings.instance_id} and replaced this one: give each consumer its own"
        ),
        ErrorCode.UNRELEASED_INSTANCE_ID: (
            f"group.instance.id={settings.instance_id} is still held by another member of {group}"
        ),
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL: (
            f"{group} has members that share no assignor with this consumer, or is not a group of "
            "consumers; partition.assignment.strategy here lists " + ", ".join(strategies)
        ),
        ErrorCode.INVALID_SESSION_TIMEOUT: (
            f"session.timeout.ms={settings.session_timeout_ms} is not within the broker's "
            "group.min.session.timeout.ms and group.max.session.timeout.ms"
        ),
        ErrorCode.GROUP_MAX_SIZE_REACHED: (
            f"{group} has as many members as the broker's group.max.size allows"
        ),
        ErrorCode.GROUP_AUTHORIZATION_FAILED: (
            f"this client may not read {group}: it needs READ on the group"
        ),
        ErrorCode.UNSUPPORTED_ASSIGNOR: (
            f"the broker does not know group.remote.assignor={settings.remote_assignor}"
        ),
    }
    text = texts.get(code, f"{group}: {code.meaning}")
    return request_error(code, f"{text} ({detail})" if detail else text)


def commit_failure(code: ErrorCode, settings: GroupSettings) -> str:
    """Return why a commit was rejected, and what to change so that the next one succeeds."""
    group = f"group {settings.group_id!r}"
    if code is ErrorCode.REBALANCE_IN_PROGRESS:
        return (
            f"offsets were not committed: {group} is rebalancing; poll() to take part, then commit "
            "what is still assigned"
        )
    return (
        f"offsets were not committed: {group} has rebalanced without this consumer "
        f"({code.name}) and may have reassigned its partitions; records since the last "
        "commit will be read again. If the time between two polls was longer than "
        f"max.poll.interval.ms={settings.max_poll_interval_ms}, raise it or get fewer records per "
        "poll with max.poll.records; if heartbeats could not be sent, raise "
        f"session.timeout.ms={settings.session_timeout_ms}"
    )
