"""ListGroups: every group that this broker coordinates; v4 filters by state, v5 by type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.request import Request


def handle(broker: Broker, request: Request[ListGroupsRequest]) -> ListGroupsResponse:
    """List the groups that the caller may see."""
    if broker.groups.is_loading:
        raise RequestError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    session, body = request.session, request.body
    sees_all = broker.allows(session, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
    return ListGroupsResponse(
        groups=[
            group
            for shard in broker.groups.loaded_shards()
            for group in shard.machine.administration.list_groups(
                body.states_filter, body.types_filter
            )
            if sees_all
            or broker.allows(session, Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
        ]
    )


def refuse(request: ListGroupsRequest, code: ErrorCode, message: str | None) -> ListGroupsResponse:
    """Answer with an error."""
    return ListGroupsResponse(error_code=code)
