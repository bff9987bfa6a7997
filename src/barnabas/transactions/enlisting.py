"""AddPartitionsToTxn as the transactions that it is about, and its answer from their results.

Clients send one transaction (versions 0 to 3), brokers several (from 4 on), which may belong to
different coordinators of the same broker. So a coordinator is told of one at a time and answers
with that one's result; these functions take the request apart and put the answer together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

BATCHED = 4
"""From this version on brokers send several transactions at once."""


def transactions_of(
    request: AddPartitionsToTxnRequest, version: int
) -> list[AddPartitionsToTxnTransaction]:
    """Return what a request asks, transaction by transaction."""
    if version >= BATCHED:
        return request.transactions
    return [
        AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            verify_only=False,
            topics=request.v3_and_below_topics,
        )
    ]


def partitions_of(transaction: AddPartitionsToTxnTransaction) -> frozenset[TopicPartition]:
    """Return the partitions that a transaction names."""
    return frozenset(
        TopicPartition(topic.name, partition)
        for topic in transaction.topics
        for partition in topic.partitions
    )


def result_of(
    transaction: AddPartitionsToTxnTransaction,
    otherwise: ErrorCode,
    errors: Mapping[TopicPartition, ErrorCode] | None = None,
) -> AddPartitionsToTxnResult:
    """Answer for every partition: with its own error, or the one of all the others."""
    codes = errors or {}
    return AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id,
        topic_results=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=partition,
                        partition_error_code=codes.get(
                            TopicPartition(topic.name, partition), otherwise
                        ),
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in transaction.topics
        ],
    )


def refused(
    transaction: AddPartitionsToTxnTransaction, errors: Mapping[TopicPartition, ErrorCode]
) -> AddPartitionsToTxnResult:
    """Answer where some partitions may not take part (unknown, forbidden): then none does."""
    return result_of(transaction, ErrorCode.OPERATION_NOT_ATTEMPTED, errors)


def add_partitions_response(
    results: Sequence[AddPartitionsToTxnResult], version: int
) -> AddPartitionsToTxnResponse:
    """Put the answer together, in the shape of the request's version."""
    if version >= BATCHED:
        return AddPartitionsToTxnResponse(results_by_transaction=list(results))
    [result] = results
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)
