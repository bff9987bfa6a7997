"""DescribeGroups: state, members and assignments of classic groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import Operation, ResourceType, authorized_bits
from barnabas.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.request import Request


def handle(broker: Broker, request: Request[DescribeGroupsRequest]) -> DescribeGroupsResponse:
    """Describe each group."""
    return DescribeGroupsResponse(
        groups=[_describe(broker, request, group_id) for group_id in request.body.groups]
    )


def refuse(
    request: DescribeGroupsRequest, code: ErrorCode, message: str | None
) -> DescribeGroupsResponse:
    """Answer every group with one error."""
    return DescribeGroupsResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=code) for group_id in request.groups]
    )


def _describe(
    broker: Broker, request: Request[DescribeGroupsRequest], group_id: str
) -> DescribedGroup:
    session = request.session
    try:
        broker.groups.authorize(request, group_id, Operation.DESCRIBE)
        described = broker.groups.shard(group_id).machine.administration.describe(
            group_id, request.version
        )
    except RequestError as refusal:
        return DescribedGroup(group_id=group_id, error_code=refusal.code)
    if request.body.include_authorized_operations:
        described.authorized_operations = authorized_bits(
            broker.authorizer, session.principal, session.client_host, ResourceType.GROUP, group_id
        )
    return described
