"""ControlledShutdown: a broker asks the controller to move its leaderships before it stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.cluster.controller_requests import controlled_shutdown
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


async def handle(
    broker: Broker, request: Request[ControlledShutdownRequest]
) -> ControlledShutdownResponse:
    """Move the leaderships that can be moved."""
    broker.check_cluster_action(request.session)
    return await controlled_shutdown(broker.controller, request.body)


def refuse(
    request: ControlledShutdownRequest, code: ErrorCode, message: str | None
) -> ControlledShutdownResponse:
    """Answer with an error."""
    return ControlledShutdownResponse(error_code=code)
