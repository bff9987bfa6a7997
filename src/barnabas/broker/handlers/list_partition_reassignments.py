"""ListPartitionReassignments: which partitions are moving; on a single broker none ever is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.request import Request


def handle(
    broker: Broker, request: Request[ListPartitionReassignmentsRequest]
) -> ListPartitionReassignmentsResponse:
    """Answer that nothing moves."""
    if not broker.allows(request.session, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        raise RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return ListPartitionReassignmentsResponse(error_message=None)


def refuse(
    request: ListPartitionReassignmentsRequest, code: ErrorCode, message: str | None
) -> ListPartitionReassignmentsResponse:
    """Answer with an error."""
    return ListPartitionReassignmentsResponse(error_code=code, error_message=message)
