"""ConsumerGroupDescribe: epochs, members and assignments of groups that the broker assigns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.coordinators.joined_replies import JoinedReply, ReplyPart
from barnabas.groups.store_errors import offset_error
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.outcome import Outcome, Reply
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request
    from barnabas.broker.network.session import Session


def handle(broker: Broker, request: Request[ConsumerGroupDescribeRequest]) -> None:
    """Describe each group; only state that a new coordinator would know is shown."""
    names = request.body.group_ids
    joined = JoinedReply[DescribedGroup](
        request, len(names), lambda groups: ConsumerGroupDescribeResponse(groups=groups)
    )
    for number, group_id in enumerate(names):
        _describe(broker, request, group_id, joined.part(number))


def refuse(
    request: ConsumerGroupDescribeRequest, code: ErrorCode, message: str | None
) -> ConsumerGroupDescribeResponse:
    """Answer every group with one error."""
    return ConsumerGroupDescribeResponse(
        groups=[
            DescribedGroup(group_id=group_id, error_code=code, error_message=message)
            for group_id in request.group_ids
        ]
    )


def _describe(
    broker: Broker,
    request: Request[ConsumerGroupDescribeRequest],
    group_id: str,
    part: ReplyPart[DescribedGroup],
) -> None:
    session, groups = request.session, broker.groups
    try:
        groups.authorize(request, group_id, Operation.DESCRIBE)
        shard = groups.shard(group_id)
    except RequestError as refusal:
        part.answer(
            DescribedGroup(
                group_id=group_id, error_code=refusal.code, error_message=refusal.message
            )
        )
        return
    described = shard.machine.administration.describe_consumer(group_id)
    if request.body.include_authorized_operations and not described.error_code:
        described.authorized_operations = broker.authorized_operations(
            session, ResourceType.GROUP, group_id
        )
    _hide(broker, session, described)

    def undo(code: ErrorCode) -> list[Reply]:
        return [Reply(part, DescribedGroup(group_id=group_id, error_code=offset_error(code)))]

    groups.apply(shard, Outcome([Reply(part, described)], undo=undo))


def _hide(broker: Broker, session: Session, described: DescribedGroup) -> None:
    """Empty a group whose members read topics that the client may not describe."""
    topics = {
        topic.topic_name
        for member in described.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    for topic in sorted(topics):
        if not broker.allows(session, Operation.DESCRIBE, ResourceType.TOPIC, topic):
            described.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            described.error_message = (
                "The group has described topic(s) that the client is not authorized to describe."
            )
            described.members = []
            return
