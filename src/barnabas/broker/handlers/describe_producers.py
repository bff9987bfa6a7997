"""DescribeProducers: who writes to a partition, with which sequence, and since when in a
transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(broker: Broker, request: Request[DescribeProducersRequest]) -> DescribeProducersResponse:
    """List the active producers of each partition."""
    response = DescribeProducersResponse()
    for topic in request.body.topics:
        results = []
        for index in topic.partition_indexes:
            result = PartitionResponse(partition_index=index)
            try:
                result.active_producers = _producers(broker, request, topic.name, index)
            except RequestError as refusal:
                result.error_code, result.error_message = refusal.code, refusal.message
            results.append(result)
        response.topics.append(TopicResponse(name=topic.name, partitions=results))
    return response


def refuse(
    request: DescribeProducersRequest, code: ErrorCode, message: str | None
) -> DescribeProducersResponse:
    """Answer every partition with one error."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    PartitionResponse(partition_index=index, error_code=code, error_message=message)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _producers(
    broker: Broker, request: Request[DescribeProducersRequest], topic: str, index: int
) -> list[ProducerState]:
    if broker.topics.name_error(topic):
        raise RequestError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    if not broker.allows(request.session, Operation.READ, ResourceType.TOPIC, topic):
        raise RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = broker.partitions.get((topic, index))
    if partition is None:
        raise broker.absent(topic, index)
    partition.check_leader()
    return [
        ProducerState(
            producer_id=entry.producer_id,
            producer_epoch=entry.epoch,
            last_sequence=entry.last_sequence,
            last_timestamp=entry.last_timestamp,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=entry.transaction_first_offset,
        )
        for entry in partition.log.producers
    ]
