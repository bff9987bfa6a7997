"""AddOffsetsToTxn: a transaction will commit offsets of a group."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from barnabas.broker.coordinators.groups import OFFSETS_TOPIC
from barnabas.metadata.partition_for import partition_for
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(
    broker: Broker, request: Request[AddOffsetsToTxnRequest]
) -> Coroutine[Any, Any, None] | None:
    """Add the partition that stores the group's offsets to the transaction."""
    body = request.body
    broker.transactions.authorize(request, body.transactional_id, Operation.WRITE)
    broker.groups.authorize(request, body.group_id, Operation.READ)
    if broker.cluster.topic(OFFSETS_TOPIC) is None:
        return _add_to_new_topic(broker, request)
    _add(broker, request)
    return None


async def _add_to_new_topic(broker: Broker, request: Request[AddOffsetsToTxnRequest]) -> None:
    """Create the offsets topic if it does not exist yet."""
    await broker.groups.find(request.body.group_id)
    _add(broker, request)


def _add(broker: Broker, request: Request[AddOffsetsToTxnRequest]) -> None:
    body, transactions = request.body, broker.transactions
    topic = broker.cluster.topic(OFFSETS_TOPIC)
    if topic is None:
        raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    number = partition_for(body.group_id, len(topic.partitions))
    shard = transactions.shard(body.transactional_id)
    outcome = shard.machine.handle_add_offsets(
        body, request.version, TopicPartition(OFFSETS_TOPIC, number), request, broker.now_ms()
    )
    transactions.apply(shard, outcome)


def refuse(
    request: AddOffsetsToTxnRequest, code: ErrorCode, message: str | None
) -> AddOffsetsToTxnResponse:
    """Answer with an error."""
    return AddOffsetsToTxnResponse(error_code=code)
