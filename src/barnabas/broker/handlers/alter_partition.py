"""AlterPartition: a leader asks the controller to change the ISR."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.cluster.controller_requests import alter_partition
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


async def handle(broker: Broker, request: Request[AlterPartitionRequest]) -> AlterPartitionResponse:
    """Accept or reject each change."""
    broker.check_cluster_action(request.session)
    return await alter_partition(broker.controller, request.body, request.version)


def refuse(
    request: AlterPartitionRequest, code: ErrorCode, message: str | None
) -> AlterPartitionResponse:
    """Answer with an error."""
    return AlterPartitionResponse(error_code=code)
