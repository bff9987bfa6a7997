"""TxnOffsetCommit: offsets that count when, and only when, their transaction commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.committable import committable
from barnabas.groups.offset_table import refused_txn_commit
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.request import Request


def handle(broker: Broker, request: Request[TxnOffsetCommitRequest]) -> None:
    """Append the offsets as part of the producer's transaction."""
    body, groups = request.body, broker.groups
    broker.transactions.authorize(request, body.transactional_id, Operation.WRITE)
    groups.authorize(request, body.group_id, Operation.READ)
    shard = groups.shard(body.group_id)
    partition = shard.partition
    if broker.options.transaction_partition_verification_enable and not (
        partition.log.producers.has_open_transaction(body.producer_id)
    ):
        code = broker.transactions.verify(
            body.transactional_id, body.producer_id, body.producer_epoch, partition.topic_partition
        )
        if code is ErrorCode.TRANSACTION_ABORTABLE and request.version < 4:
            code = ErrorCode.INVALID_TXN_STATE
        if code is not ErrorCode.NONE:
            raise RequestError(code)
    call = groups.call(request, committable(broker, request))
    groups.apply(shard, shard.machine.offset_requests.handle_txn_commit(body, call))


def refuse(
    request: TxnOffsetCommitRequest, code: ErrorCode, message: str | None
) -> TxnOffsetCommitResponse:
    """Answer every partition with one error."""
    return refused_txn_commit(request, code)
