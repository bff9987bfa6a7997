"""InitProducerId: the id under which a producer's sequences are checked, and its transactions run.

Without a transactional id every call returns a new id. With one, the coordinator returns a new
epoch, which fences the producer with the old one; from v3 on, a producer may request that itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


async def handle(
    broker: Broker, request: Request[InitProducerIdRequest]
) -> InitProducerIdResponse | None:
    """Return a new id, or ask the coordinator of the transactional id."""
    transactional_id = request.body.transactional_id
    if transactional_id is not None:
        await _init_transactional(broker, request, transactional_id)
        return None
    if not broker.allows_any(request.session, Operation.WRITE, ResourceType.TOPIC):
        broker.check_cluster(request.session, Operation.IDEMPOTENT_WRITE)
    return InitProducerIdResponse(producer_id=await broker.producer_ids.next_id(), producer_epoch=0)


def refuse(
    request: InitProducerIdRequest, code: ErrorCode, message: str | None
) -> InitProducerIdResponse:
    """Answer with an error."""
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)


async def _init_transactional(
    broker: Broker, request: Request[InitProducerIdRequest], transactional_id: str
) -> None:
    transactions = broker.transactions
    transactions.authorize(request, transactional_id, Operation.WRITE)
    if transactional_id == "":
        raise RequestError(ErrorCode.INVALID_REQUEST)
    fresh_id: int | None = None
    while True:
        shard = transactions.shard(transactional_id)
        outcome = shard.machine.handle_init_producer_id(
            request.body, request.version, request, broker.now_ms(), fresh_id
        )
        if not outcome.needs_producer_id:
            transactions.apply(shard, outcome)
            return
        fresh_id = await broker.producer_ids.next_id()
