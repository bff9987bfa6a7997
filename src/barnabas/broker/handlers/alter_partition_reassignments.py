"""AlterPartitionReassignments: move replicas to other brokers, or cancel (null replicas)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.controller.states import ControllerState
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request
    from barnabas.controller.term import Term


async def handle(
    broker: Broker, request: Request[AlterPartitionReassignmentsRequest]
) -> AlterPartitionReassignmentsResponse:
    """Start each reassignment; a rejected one does not affect the others."""
    broker.check_cluster(request.session, Operation.ALTER)
    body = request.body
    response = AlterPartitionReassignmentsResponse(
        error_message=None, allow_replication_factor_change=body.allow_replication_factor_change
    )
    for topic in body.topics:
        results = [await _begin(broker, body, topic.name, each) for each in topic.partitions]
        response.responses.append(ReassignableTopicResponse(name=topic.name, partitions=results))
    return response


async def _begin(
    broker: Broker,
    body: AlterPartitionReassignmentsRequest,
    topic: str,
    wanted: ReassignablePartition,
) -> ReassignablePartitionResponse:
    key = TopicPartition(topic, wanted.partition_index)

    async def begin(term: Term) -> None:
        same_factor = not body.allow_replication_factor_change
        await term.reassignment.begin(key, wanted.replicas, same_factor=same_factor)

    try:
        await broker.controller.call(begin, ControllerState.REASSIGNMENT)
    except RequestError as refusal:
        if refusal.code is ErrorCode.NOT_CONTROLLER:
            raise
        return ReassignablePartitionResponse(
            partition_index=key.partition, error_code=refusal.code, error_message=refusal.message
        )
    return ReassignablePartitionResponse(partition_index=key.partition, error_message=None)


def refuse(
    request: AlterPartitionReassignmentsRequest, code: ErrorCode, message: str | None
) -> AlterPartitionReassignmentsResponse:
    """Answer with an error."""
    return AlterPartitionReassignmentsResponse(error_code=code, error_message=message)
