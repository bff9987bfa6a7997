"""OffsetDelete: delete offsets of topics that no member of a group reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.offset_filter import committable
from barnabas.model.error_codes import ErrorCode
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(broker: Broker, request: Request[OffsetDeleteRequest]) -> None:
    """Delete the valid partitions; the others get their own errors."""
    groups, group_id = broker.groups, request.body.group_id
    groups.authorize(request, group_id, Operation.DELETE)
    shard = groups.shard(group_id)
    call = groups.call(request, committable(broker, request))
    groups.apply(shard, shard.machine.offset_requests.handle_delete(request.body, call))


def refuse(
    request: OffsetDeleteRequest, code: ErrorCode, message: str | None
) -> OffsetDeleteResponse:
    """Answer with an error."""
    return OffsetDeleteResponse(error_code=code)
