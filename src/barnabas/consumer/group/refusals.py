"""Why a group refuses a consumer for good, with what to change."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.consumer.group.settings import GroupSettings
from barnabas.model.error_codes import ErrorCode
from barnabas.model.request_errors import CodedError, request_error


def refusal(
    code: ErrorCode,
    settings: GroupSettings,
    *,
    strategies: Iterable[str] = (),
    told: str | None = None,
) -> CodedError:
    """Return the exception for an answer; `told` is the broker's own text."""
    group = f"group {settings.group_id!r}"
    texts = {
        ErrorCode.FENCED_INSTANCE_ID: (
            f"another consumer has joined {group} with group.instance.id="
            f"{settings.instance_id} and taken the place of this one: give each its own"
        ),
        ErrorCode.UNRELEASED_INSTANCE_ID: (
            f"group.instance.id={settings.instance_id} is still held by another member of {group}"
        ),
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL: (
            f"{group} has members that share no assignor with this consumer, or is no group of "
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
    return request_error(code, f"{text} ({told})" if told else text)


def commit_failure(code: ErrorCode, settings: GroupSettings) -> str:
    """Say why a commit was refused, and what to change so that the next is not."""
    group = f"group {settings.group_id!r}"
    if code is ErrorCode.REBALANCE_IN_PROGRESS:
        return (
            f"offsets were not committed: {group} is rebalancing; poll() to take part, then commit "
            "what is still assigned"
        )
    return (
        f"offsets were not committed: {group} has rebalanced without this consumer "
        f"({code.name}) and may have given its partitions to another; records since the last "
        "commit will be read again. If the time between two polls was longer than "
        f"max.poll.interval.ms={settings.max_poll_interval_ms}, raise it or get fewer records per "
        "poll with max.poll.records; if heartbeats could not be sent, raise "
        f"session.timeout.ms={settings.session_timeout_ms}"
    )
