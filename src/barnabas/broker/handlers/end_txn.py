"""EndTxn: commit or abort; responds when the decision is durable, before markers are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


async def handle(broker: Broker, request: Request[EndTxnRequest]) -> None:
    """Let the coordinator of the transactional id decide."""
    transactions, transactional_id = broker.transactions, request.body.transactional_id
    transactions.authorize(request, transactional_id, Operation.WRITE)
    fresh_id: int | None = None
    while True:
        shard = transactions.shard(transactional_id)
        outcome = shard.machine.handle_end_txn(
            request.body, request.version, request, broker.now_ms(), fresh_id
        )
        if not outcome.needs_producer_id:
            transactions.apply(shard, outcome)
            return
        fresh_id = await broker.producer_ids.next_id()


def refuse(request: EndTxnRequest, code: ErrorCode, message: str | None) -> EndTxnResponse:
    """Answer with an error."""
    return EndTxnResponse(error_code=code)
