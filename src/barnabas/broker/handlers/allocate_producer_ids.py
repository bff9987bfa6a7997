"""AllocateProducerIds: a broker asks the controller for a block of producer ids.

Our brokers take theirs from the tree themselves; Apache Kafka's, from 3.0 on, ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.cluster.tree_errors import refused_as
from barnabas.metadata.producer_id_blocks import ProducerIdBlocks
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request
    from barnabas.controller.term import Term


async def handle(
    broker: Broker, request: Request[AllocateProducerIdsRequest]
) -> AllocateProducerIdsResponse:
    """Reserve a block for a broker in its current epoch."""
    broker.check_cluster_action(request.session)
    asked = request.body

    async def reserve(term: Term) -> range:
        if not term.knowledge.lives(asked.broker_id, asked.broker_epoch):
            raise RequestError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"broker {asked.broker_id} is not registered with epoch {asked.broker_epoch}",
            )
        return await ProducerIdBlocks(broker.tree, asked.broker_id).take()

    with refused_as():
        block = await broker.controller.call(reserve)
    return AllocateProducerIdsResponse(producer_id_start=block.start, producer_id_len=len(block))


def refuse(
    request: AllocateProducerIdsRequest, code: ErrorCode, message: str | None
) -> AllocateProducerIdsResponse:
    """Answer with an error."""
    return AllocateProducerIdsResponse(error_code=code)
