"""ConsumerGroupDescribe: epochs, members and assignments of groups that the broker assigns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import Operation, ResourceType, authorized_bits
from barnabas.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.request import Request


def handle(
    broker: Broker, request: Request[ConsumerGroupDescribeRequest]
) -> ConsumerGroupDescribeResponse:
    """Describe each group."""
    return ConsumerGroupDescribeResponse(
        groups=[_describe(broker, request, group_id) for group_id in request.body.group_ids]
    )


def refuse(
    request: ConsumerGroupDescribeRequest, code: ErrorCode, message: str | None
) -> ConsumerGroupDescribeResponse:
    """Answer every group with one error."""
    return ConsumerGroupDescribeResponse(
        groups=[
            DescribedGroup(group_id=group_id, error_code=code, error_message=message)
            for group_id in request.group_ids
        ]
    )


def _describe(
    broker: Broker, request: Request[ConsumerGroupDescribeRequest], group_id: str
) -> DescribedGroup:
    session = request.session
    try:
        broker.groups.authorize(request, group_id, Operation.DESCRIBE)
        described = broker.groups.shard(group_id).machine.administration.describe_consumer(group_id)
    except RequestError as refusal:
        return DescribedGroup(
            group_id=group_id, error_code=refusal.code, error_message=refusal.message
        )
    if request.body.include_authorized_operations:
        described.authorized_operations = authorized_bits(
            broker.authorizer, session.principal, session.client_host, ResourceType.GROUP, group_id
        )
    return described
