"""TxnOffsetCommit: offsets that take effect if, and only if, their transaction commits."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from barnabas.broker.handlers.offset_filter import Errors, committable, partition_errors
from barnabas.groups.offset_table import refused_txn_commit
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request

FIRST_ABORTABLE_VERSION = 4


def handle(
    broker: Broker, request: Request[TxnOffsetCommitRequest]
) -> TxnOffsetCommitResponse | Coroutine[Any, Any, None] | None:
    """Append the offsets as part of the producer's transaction."""
    body, groups = request.body, broker.groups
    broker.transactions.authorize(request, body.transactional_id, Operation.WRITE)
    groups.authorize(request, body.group_id, Operation.READ)
    errors = partition_errors(broker, request)
    if errors and len(errors) == sum(len(topic.partitions) for topic in body.topics):
        return _refused(body, errors)  # nothing is left to ask a coordinator about
    partition = groups.shard(body.group_id).partition
    if broker.options.transaction_partition_verification_enable and not (
        partition.log.producers.has_open_transaction(body.producer_id)
    ):
        if broker.transactions.coordinator_of(body.transactional_id) != broker.broker_id:
            return _commit_verified(broker, request)
        _check(
            request,
            broker.transactions.verify(
                body.transactional_id,
                body.producer_id,
                body.producer_epoch,
                partition.topic_partition,
            ),
        )
    _commit(broker, request)
    return None


def _refused(request: TxnOffsetCommitRequest, errors: Errors) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=errors[position, number],
                    )
                    for number, partition in enumerate(topic.partitions)
                ],
            )
            for position, topic in enumerate(request.topics)
        ]
    )


async def _commit_verified(broker: Broker, request: Request[TxnOffsetCommitRequest]) -> None:
    """Ask the transaction's coordinator, which is another broker, about the group's partition."""
    body = request.body
    while True:
        partition = broker.groups.shard(body.group_id).partition
        producers = partition.log.producers
        seen, key = producers.markers_seen, partition.topic_partition
        verdicts = await broker.transactions.verify_remotely(
            body.transactional_id, {key: (body.producer_id, body.producer_epoch)}
        )
        _check(request, verdicts[key])
        # A marker that arrived meanwhile may have ended the transaction in question.
        if producers.markers_seen == seen:
            _commit(broker, request)
            return


def _check(request: Request[TxnOffsetCommitRequest], code: ErrorCode) -> None:
    """Raise the error that a verdict means for an offset commit."""
    if code is ErrorCode.TRANSACTION_ABORTABLE and request.version < FIRST_ABORTABLE_VERSION:
        code = ErrorCode.INVALID_TXN_STATE
    if code is ErrorCode.NOT_ENOUGH_REPLICAS:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE  # the retriable error of this request
    if code is not ErrorCode.NONE:
        raise RequestError(code)


def _commit(broker: Broker, request: Request[TxnOffsetCommitRequest]) -> None:
    groups, body = broker.groups, request.body
    shard = groups.shard(body.group_id)
    call = groups.call(request, committable(broker, request))
    groups.apply(shard, shard.machine.offset_requests.handle_txn_commit(body, call))


def refuse(
    request: TxnOffsetCommitRequest, code: ErrorCode, message: str | None
) -> TxnOffsetCommitResponse:
    """Answer every partition with one error."""
    return refused_txn_commit(request, code)
