"""AddPartitionsToTxn: partitions that a transaction will write to.

Clients send v0 to v3, one transaction; brokers v4 and later, several, some only to be verified.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.coordinators.joined_replies import JoinedReply, ReplyPart
from barnabas.metadata.topic_names import INTERNAL_TOPICS
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.transactions.enlisting import (
    BATCHED,
    add_partitions_response,
    partitions_of,
    refused,
    result_of,
    transactions_of,
)
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(
    broker: Broker, request: Request[AddPartitionsToTxnRequest]
) -> AddPartitionsToTxnResponse | None:
    """Ask each transaction's coordinator; answer when the last one has."""
    if request.version >= BATCHED and not broker.allows_cluster(
        request.session, Operation.CLUSTER_ACTION
    ):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    asked = transactions_of(request.body, request.version)
    if not asked:
        return AddPartitionsToTxnResponse()
    if request.version >= BATCHED and all(each.verify_only for each in asked):
        request.count_as_other()
    joined = JoinedReply[AddPartitionsToTxnResult](
        request, len(asked), lambda results: add_partitions_response(results, request.version)
    )
    for number, transaction in enumerate(asked):
        _add(broker, request, transaction, joined.part(number))
    return None


def refuse(
    request: AddPartitionsToTxnRequest, code: ErrorCode, message: str | None
) -> AddPartitionsToTxnResponse:
    """Answer every partition of every transaction with one error."""
    version = BATCHED if request.transactions else 0
    results = [result_of(each, code) for each in transactions_of(request, version)]
    return add_partitions_response(results, version)


def _add(
    broker: Broker,
    request: Request[AddPartitionsToTxnRequest],
    transaction: AddPartitionsToTxnTransaction,
    part: ReplyPart[AddPartitionsToTxnResult],
) -> None:
    transactions = broker.transactions
    try:
        if request.version < BATCHED:
            transactions.authorize(request, transaction.transactional_id, Operation.WRITE)
        errors = _unwritable(broker, request, transaction)
        if errors:
            part.answer(refused(transaction, errors))
            return
        shard = transactions.shard(transaction.transactional_id)
    except RequestError as refusal:
        part.answer(result_of(transaction, refusal.code))
        return
    outcome = shard.machine.handle_add_partitions(
        transaction, request.version, part, broker.now_ms()
    )
    transactions.apply(shard, outcome)


def _unwritable(
    broker: Broker,
    request: Request[AddPartitionsToTxnRequest],
    transaction: AddPartitionsToTxnTransaction,
) -> dict[TopicPartition, ErrorCode]:
    """Find the partitions that cannot take part; brokers may name any that exists."""
    errors: dict[TopicPartition, ErrorCode] = {}
    for key in sorted(partitions_of(transaction)):
        view = broker.cluster.topic(key.topic)
        if request.version < BATCHED and (
            key.topic in INTERNAL_TOPICS
            or not broker.allows(request.session, Operation.WRITE, ResourceType.TOPIC, key.topic)
        ):
            errors[key] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif view is None or not 0 <= key.partition < len(view.partitions):
            errors[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return errors
