"""AddPartitionsToTxn: splitting a request by transaction, and combining the results.

Clients send one transaction (versions 0 to 3), brokers several (from 4 on), which may belong to
different coordinators of the same broker. So a coordinator gets one at a time and returns the
result of that one; these functions split the request and assemble the response.
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
"""From this version on, brokers send several transactions at once."""


def transactions_of(
    request: AddPartitionsToTxnRequest, version: int
) -> list[AddPartitionsToTxnTransaction]:
    """Return the transactions of a request."""
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
    """Return the partitions of a transaction."""
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
    """Build the result of every partition: its own error, or the common one."""
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
    """Build the result if some partitions cannot be added (unknown, unauthorized): none is."""
    return result_of(transaction, ErrorCode.OPERATION_NOT_ATTEMPTED, errors)


def add_partitions_response(
    results: Sequence[AddPartitionsToTxnResult], version: int
) -> AddPartitionsToTxnResponse:
    """Assemble the response, in the form of the request's version."""
    if version >= BATCHED:
        return AddPartitionsToTxnResponse(results_by_transaction=list(results))
    [result] = results
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)
