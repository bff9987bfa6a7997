"""OffsetFetch: how far groups have read; v0 asks the coordination tree, v8 for several groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.coordinators.joined_replies import JoinedReply, ReplyPart
from barnabas.groups.fetching import fetched, groups_asked, no_offset, refused
from barnabas.groups.offset_table import TOPIC_IDS_SINCE
from barnabas.groups.store_errors import offset_error
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.outcome import Outcome, Reply
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(
    broker: Broker, request: Request[OffsetFetchRequest]
) -> Coroutine[Any, Any, OffsetFetchResponse] | None:
    """Look up each group."""
    if request.version == 0:
        return _fetch_from_tree(broker, request)
    asked = groups_asked(request.body, request.version)
    joined = JoinedReply[OffsetFetchResponseGroup](
        request, len(asked), lambda answers: fetched(answers, request.version)
    )
    for number, group in enumerate(asked):
        _fetch(broker, request, group, joined.part(number))
    return None


def refuse(
    request: OffsetFetchRequest, code: ErrorCode, message: str | None
) -> OffsetFetchResponse:
    """Answer every group with one error, wherever the version has a field for it."""
    if request.groups:
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
                for group in request.groups
            ]
        )
    answer = fetched([refused(groups_asked(request, 1)[0], 1, code)], 1)
    return OffsetFetchResponse(topics=answer.topics, error_code=code)


def _fetch(
    broker: Broker,
    request: Request[OffsetFetchRequest],
    asked: OffsetFetchRequestGroup,
    part: ReplyPart[OffsetFetchResponseGroup],
) -> None:
    groups = broker.groups
    try:
        groups.authorize(request, asked.group_id, Operation.DESCRIBE)
        shard = groups.shard(asked.group_id)
    except RequestError as refusal:
        part.answer(refused(asked, request.version, refusal.code))
        return
    found = shard.machine.offset_requests.fetch(asked, request.version, request.body.require_stable)
    _hide(broker, request, asked, found)

    def undo(code: ErrorCode) -> list[Reply]:
        return [Reply(part, refused(asked, request.version, offset_error(code)))]

    # Applied, not just sent: an offset that is not durable yet must not be shown, or it could go
    # back.
    groups.apply(shard, Outcome([Reply(part, found)], undo=undo))


def _hide(
    broker: Broker,
    request: Request[OffsetFetchRequest],
    asked: OffsetFetchRequestGroup,
    found: OffsetFetchResponseGroup,
) -> None:
    """Remove what the caller may not see, with an error if it was requested by name."""
    shown = []
    for topic in found.topics:
        by_id = request.version >= TOPIC_IDS_SINCE
        name = broker.topic_name(topic.topic_id) if by_id else topic.name
        if name is None or _may_see(broker, request, name):
            shown.append(topic)
        elif asked.topics is not None:
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            topic.partitions = [no_offset(each.partition_index, code) for each in topic.partitions]
            shown.append(topic)
    found.topics = shown


def _may_see(broker: Broker, request: Request[OffsetFetchRequest], topic: str) -> bool:
    return broker.allows(request.session, Operation.DESCRIBE, ResourceType.TOPIC, topic)


async def _fetch_from_tree(
    broker: Broker, request: Request[OffsetFetchRequest]
) -> OffsetFetchResponse:
    (asked,) = groups_asked(request.body, request.version)
    broker.groups.authorize(request, asked.group_id, Operation.DESCRIBE)
    topics = []
    for topic in asked.topics or ():
        results = []
        may_see = _may_see(broker, request, topic.name)
        for index in topic.partition_indexes:
            if not may_see:
                results.append(no_offset(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
                continue
            offset = await broker.tree_offsets.fetch(asked.group_id, topic.name, index)
            missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if offset is None else ErrorCode.NONE
            result = no_offset(index, missing)
            if offset is not None:
                result.committed_offset = offset
            results.append(result)
        topics.append(OffsetFetchResponseTopics(name=topic.name, partitions=results))
    group = OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)
    return fetched([group], request.version)
