"""DeleteGroups: groups without members, and their offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.coordinators.joined_replies import JoinedReply
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(broker: Broker, request: Request[DeleteGroupsRequest]) -> None:
    """Delete each group; answer when the last one is durable."""
    groups = broker.groups
    names = list(dict.fromkeys(request.body.groups_names))
    joined = JoinedReply[DeletableGroupResult](
        request, len(names), lambda results: DeleteGroupsResponse(results=results)
    )
    for number, group_id in enumerate(names):
        try:
            groups.authorize(request, group_id, Operation.DELETE)
            shard = groups.shard(group_id)
        except RequestError as refusal:
            result = DeletableGroupResult(group_id=group_id, error_code=refusal.code)
            joined.put(number, result)
            continue
        call = groups.call(request, joined.part(number))
        groups.apply(shard, shard.machine.administration.handle_delete(group_id, call))


def refuse(
    request: DeleteGroupsRequest, code: ErrorCode, message: str | None
) -> DeleteGroupsResponse:
    """Answer every group with one error."""
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=code)
            for group_id in request.groups_names
        ]
    )
