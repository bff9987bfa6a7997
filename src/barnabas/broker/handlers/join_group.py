"""JoinGroup: join a group, or its next generation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(broker: Broker, request: Request[JoinGroupRequest]) -> JoinGroupResponse | None:
    """Let the group's coordinator decide; it responds now or later."""
    groups, group_id = broker.groups, request.body.group_id
    groups.authorize(request, group_id, Operation.READ)
    shard = groups.shard(group_id)
    groups.apply(shard, shard.machine.handle_join(request.body, groups.call(request)))
    return None


def refuse(request: JoinGroupRequest, code: ErrorCode, message: str | None) -> JoinGroupResponse:
    """Answer with an error."""
    return JoinGroupResponse(
        error_code=code, generation_id=-1, protocol_name="", member_id=request.member_id
    )
