"""ListTransactions: transactional ids of this broker, by state, producer, age or name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.transactions.listing import list_of
from barnabas.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(broker: Broker, request: Request[ListTransactionsRequest]) -> ListTransactionsResponse:
    """List what the caller may see."""
    if broker.silence.is_silent:
        raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    machines = [shard.machine for shard in broker.transactions.shards.values()]
    response = list_of(machines, request.body, broker.now_ms())
    response.transaction_states = [
        state
        for state in response.transaction_states
        if broker.sees(
            request.session,
            Operation.DESCRIBE,
            ResourceType.TRANSACTIONAL_ID,
            state.transactional_id,
        )
    ]
    return response


def refuse(
    request: ListTransactionsRequest, code: ErrorCode, message: str | None
) -> ListTransactionsResponse:
    """Answer with an error."""
    return ListTransactionsResponse(error_code=code)
