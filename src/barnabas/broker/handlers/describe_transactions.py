"""DescribeTransactions: state, producer and partitions of transactional ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.transactions.listing import describe, undescribed
from barnabas.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(
    broker: Broker, request: Request[DescribeTransactionsRequest]
) -> DescribeTransactionsResponse:
    """Describe each id."""
    return DescribeTransactionsResponse(
        transaction_states=[
            _describe(broker, request, each) for each in request.body.transactional_ids
        ]
    )


def refuse(
    request: DescribeTransactionsRequest, code: ErrorCode, message: str | None
) -> DescribeTransactionsResponse:
    """Answer every id with one error."""
    return DescribeTransactionsResponse(
        transaction_states=[undescribed(each, code) for each in request.transactional_ids]
    )


def _describe(
    broker: Broker, request: Request[DescribeTransactionsRequest], transactional_id: str
) -> TransactionState:
    try:
        broker.transactions.authorize(request, transactional_id, Operation.DESCRIBE)
        state = describe(broker.transactions.shard(transactional_id).machine, transactional_id)
    except RequestError as refusal:
        return undescribed(transactional_id, refusal.code)
    state.topics = [
        topic
        for topic in state.topics
        if broker.sees(request.session, Operation.DESCRIBE, ResourceType.TOPIC, topic.topic)
    ]
    return state
