"""ListPartitionReassignments: which partitions are being reassigned, and to which brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request
    from barnabas.controller.knowledge import Knowledge
    from barnabas.controller.term import Term


async def handle(
    broker: Broker, request: Request[ListPartitionReassignmentsRequest]
) -> ListPartitionReassignmentsResponse:
    """Answer from the controller's state; null means all topics."""
    broker.check_cluster(request.session, Operation.DESCRIBE)

    async def knowledge(term: Term) -> Knowledge:
        return term.knowledge

    # In the controller's queue: a new controller has to load its state first.
    known = await broker.controller.call(knowledge)
    asked = None
    if request.body.topics is not None:
        asked = {
            TopicPartition(topic.name, number)
            for topic in request.body.topics
            for number in topic.partition_indexes
        }
    topics: dict[str, OngoingTopicReassignment] = {}
    for key in known.moving:
        assignment = known.assignment(key)
        if assignment is None or (asked is not None and key not in asked):
            continue
        topic = topics.setdefault(key.topic, OngoingTopicReassignment(name=key.topic))
        topic.partitions.append(
            OngoingPartitionReassignment(
                partition_index=key.partition,
                replicas=list(assignment.replicas),
                adding_replicas=list(assignment.adding),
                removing_replicas=list(assignment.removing),
            )
        )
    return ListPartitionReassignmentsResponse(error_message=None, topics=list(topics.values()))


def refuse(
    request: ListPartitionReassignmentsRequest, code: ErrorCode, message: str | None
) -> ListPartitionReassignmentsResponse:
    """Answer with an error."""
    return ListPartitionReassignmentsResponse(error_code=code, error_message=message)
