"""ListGroups: every group that this broker coordinates; v4 filters by state, v5 by type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.coordinators.joined_replies import JoinedReply, ReplyPart
from barnabas.groups.store_errors import offset_error
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.outcome import Outcome, Reply
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.coordinators.host import Shard
    from barnabas.broker.network.request import Request
    from barnabas.groups.coordinator import GroupCoordinator


Listed = list[ListedGroup] | ErrorCode
"""The groups of one coordinator, or why they are not available."""


def handle(broker: Broker, request: Request[ListGroupsRequest]) -> None:
    """List the groups that the caller may see, as a new coordinator would know them."""
    if broker.silence.is_silent:
        raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if broker.groups.is_loading:
        raise RequestError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    shards = list(broker.groups.loaded_shards())
    joined = JoinedReply[Listed](request, len(shards), _respond)
    for number, shard in enumerate(shards):
        _list(broker, request, shard, joined.part(number))


def refuse(request: ListGroupsRequest, code: ErrorCode, message: str | None) -> ListGroupsResponse:
    """Answer with an error."""
    return ListGroupsResponse(error_code=code)


def _respond(parts: list[Listed]) -> ListGroupsResponse:
    response = ListGroupsResponse()
    for part in parts:
        if isinstance(part, ErrorCode):
            return ListGroupsResponse(error_code=part)
        response.groups += part
    return response


def _list(
    broker: Broker,
    request: Request[ListGroupsRequest],
    shard: Shard[GroupCoordinator],
    part: ReplyPart[Listed],
) -> None:
    session, body = request.session, request.body
    sees_all = broker.sees(session, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
    found = [
        group
        for group in shard.machine.administration.list_groups(body.states_filter, body.types_filter)
        if sees_all or broker.sees(session, Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
    ]

    def undo(code: ErrorCode) -> list[Reply]:
        return [Reply(part, offset_error(code))]

    broker.groups.apply(shard, Outcome([Reply(part, found)], undo=undo))
