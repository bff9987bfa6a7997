"""Heartbeat: stay a member, and learn when to rejoin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(broker: Broker, request: Request[HeartbeatRequest]) -> HeartbeatResponse | None:
    """Let the group's coordinator decide; it responds now or later."""
    groups, group_id = broker.groups, request.body.group_id
    groups.authorize(request, group_id, Operation.READ)
    try:
        shard = groups.shard(group_id)
    except RequestError as refusal:
        if refusal.code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            raise
        return HeartbeatResponse()  # members are loaded alive
    groups.apply(shard, shard.machine.handle_heartbeat(request.body, groups.call(request)))
    return None


def refuse(request: HeartbeatRequest, code: ErrorCode, message: str | None) -> HeartbeatResponse:
    """Answer with an error."""
    return HeartbeatResponse(error_code=code)
