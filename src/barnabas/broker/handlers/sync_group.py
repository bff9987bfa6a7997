"""SyncGroup: provide (as leader) and get the assignment of a generation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


FIRST_PROTOCOL_VERSION = 5
"""From this version on, members say which protocol they think was chosen."""


def handle(broker: Broker, request: Request[SyncGroupRequest]) -> SyncGroupResponse | None:
    """Let the group's coordinator decide; it responds now or later."""
    groups, group_id = broker.groups, request.body.group_id
    if request.version >= FIRST_PROTOCOL_VERSION and None in (
        request.body.protocol_type,
        request.body.protocol_name,
    ):
        raise RequestError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    groups.authorize(request, group_id, Operation.READ)
    try:
        shard = groups.shard(group_id)
    except RequestError as refusal:
        if refusal.code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            raise
        # Clients do not expect "loading" here; rejoining has the same effect.
        return SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    groups.apply(shard, shard.machine.handle_sync(request.body, groups.call(request)))
    return None


def refuse(request: SyncGroupRequest, code: ErrorCode, message: str | None) -> SyncGroupResponse:
    """Answer with an error."""
    return SyncGroupResponse(error_code=code)
