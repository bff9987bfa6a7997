"""InitProducerId: hand out the id under which a producer's sequences are checked.

Only idempotent producers are served: a transactional id needs a transaction coordinator, which this
broker does not have yet, and is told so with the protocol's own error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.request import Request


async def handle(broker: Broker, request: Request[InitProducerIdRequest]) -> InitProducerIdResponse:
    """Give the next id, with epoch 0."""
    body = request.body
    if body.transactional_id is not None:
        if body.transactional_id == "":
            raise RequestError(ErrorCode.INVALID_REQUEST)
        raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if not broker.allows(
        request.session, Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME
    ):
        raise RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    producer_id = await broker.producer_ids.next_id()
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def refuse(
    request: InitProducerIdRequest, code: ErrorCode, message: str | None
) -> InitProducerIdResponse:
    """Answer with an error."""
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
