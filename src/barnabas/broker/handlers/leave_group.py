"""LeaveGroup: leave a group, or remove other members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(broker: Broker, request: Request[LeaveGroupRequest]) -> LeaveGroupResponse | None:
    """Let the group's coordinator decide; it responds now or later."""
    groups, group_id = broker.groups, request.body.group_id
    groups.authorize(request, group_id, Operation.READ)
    shard = groups.shard(group_id)
    groups.apply(shard, shard.machine.handle_leave(request.body, groups.call(request)))
    return None


def refuse(request: LeaveGroupRequest, code: ErrorCode, message: str | None) -> LeaveGroupResponse:
    """Answer with an error."""
    return LeaveGroupResponse(error_code=code)
