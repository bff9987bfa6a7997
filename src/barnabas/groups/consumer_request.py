"""The heartbeat request of a consumer group: whether it is valid, and what it changes.

A member sends only what changed; a heartbeat with all fields asks for a full response, too.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from barnabas.groups.call import Call
from barnabas.groups.consumer_group import LEFT_FOR_A_WHILE, ConsumerMember
from barnabas.groups.reconciliation import IdPartition, Partitions
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.model.patterns import compile_pattern
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

JOINING: Final = 0
LEAVING: Final = -1
"""Epochs by which a member joins or leaves."""


def validate(
    request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]
) -> None:
    """Raise RequestError if a heartbeat is invalid."""
    epoch = request.member_epoch
    has_subscription = bool(request.subscribed_topic_names or request.subscribed_topic_regex)
    wrong = None
    if request.group_id == "":
        wrong = "group id must not be empty"
    elif request.member_id == "" and (version >= 1 or epoch != JOINING):
        wrong = "member id must not be empty"
    elif request.instance_id == "" or request.rack_id == "":
        wrong = "instance id and rack must be absent or not empty"
    elif epoch < LEFT_FOR_A_WHILE:
        wrong = f"invalid member epoch {epoch}"
    elif epoch == LEFT_FOR_A_WHILE and request.instance_id is None:
        wrong = "only a static member can leave temporarily"
    elif epoch == JOINING and request.rebalance_timeout_ms == -1:
        wrong = "a joining member must set its rebalance timeout"
    elif epoch == JOINING and request.topic_partitions != []:
        wrong = "a joining member must not own partitions"
    elif epoch == JOINING and not has_subscription:
        wrong = "a joining member must have a subscription"
    if wrong is not None:
        raise RequestError(ErrorCode.INVALID_REQUEST, wrong)
    if request.server_assignor not in (None, *assignors):
        raise RequestError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"unknown assignor {request.server_assignor}; supported: {', '.join(assignors)}",
        )
    if request.subscribed_topic_regex:
        try:
            compile_pattern(request.subscribed_topic_regex)
        except InvalidValueError as failure:
            raise RequestError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(failure)) from failure


def owned_partitions(request: ConsumerGroupHeartbeatRequest) -> Partitions | None:
    """Return the partitions a member reports as owned; None if it reports nothing."""
    topics = request.topic_partitions
    if topics is None:
        return None
    return frozenset(IdPartition(topic.topic_id, n) for topic in topics for n in topic.partitions)


def described(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, call: Call
) -> ConsumerMember:
    """Return a member updated from a request; fields that are not set stay."""
    names = request.subscribed_topic_names
    regex = request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=request.instance_id or member.instance_id,
        rack_id=request.rack_id or member.rack_id,
        client_id=call.client_id,
        client_host=call.client_host,
        topics=member.topics if names is None else tuple(sorted(set(names))),
        # An empty expression removes the subscription by expression.
        regex=member.regex if regex is None else regex or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        assignor=request.server_assignor or member.assignor,
        classic=None,
    )


def is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether all fields are set, as when a member joins or lost a response."""
    return (
        request.rebalance_timeout_ms != -1
        and request.topic_partitions is not None
        and (
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        )
    )
