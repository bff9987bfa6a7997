"""DescribeGroups: state, members and assignments of classic groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.coordinators.joined_replies import JoinedReply, ReplyPart
from barnabas.groups.store_errors import offset_error
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.outcome import Outcome, Reply
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(broker: Broker, request: Request[DescribeGroupsRequest]) -> None:
    """Describe each group; only state that a new coordinator would know is shown."""
    names = request.body.groups
    joined = JoinedReply[DescribedGroup](
        request, len(names), lambda groups: DescribeGroupsResponse(groups=groups)
    )
    for number, group_id in enumerate(names):
        _describe(broker, request, group_id, joined.part(number))


def refuse(
    request: DescribeGroupsRequest, code: ErrorCode, message: str | None
) -> DescribeGroupsResponse:
    """Answer every group with one error."""
    return DescribeGroupsResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=code) for group_id in request.groups]
    )


def _describe(
    broker: Broker,
    request: Request[DescribeGroupsRequest],
    group_id: str,
    part: ReplyPart[DescribedGroup],
) -> None:
    session, groups = request.session, broker.groups
    try:
        groups.authorize(request, group_id, Operation.DESCRIBE)
        shard = groups.shard(group_id)
    except RequestError as refusal:
        part.answer(DescribedGroup(group_id=group_id, error_code=refusal.code))
        return
    described = shard.machine.administration.describe(group_id, request.version)
    if request.body.include_authorized_operations and not described.error_code:
        described.authorized_operations = broker.authorized_operations(
            session, ResourceType.GROUP, group_id
        )

    def undo(code: ErrorCode) -> list[Reply]:
        return [Reply(part, DescribedGroup(group_id=group_id, error_code=offset_error(code)))]

    groups.apply(shard, Outcome([Reply(part, described)], undo=undo))
