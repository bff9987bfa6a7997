"""ElectLeaders: have the preferred (or, if none else is left, any) replica lead.

Every partition of a broker with embedded coordination has one replica, which leads it: there is
never anything to elect, and that is what is answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.request import Request


def handle(broker: Broker, request: Request[ElectLeadersRequest]) -> ElectLeadersResponse:
    """Tell of each named partition why no election took place; null names all, which need none."""
    if not broker.allows(request.session, Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        raise RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if request.body.election_type not in (0, 1):
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"election type {request.body.election_type} is not 0 or 1"
        )
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    _result(broker, topic.topic, number) for number in topic.partitions
                ],
            )
            for topic in request.body.topic_partitions or ()
        ]
    )


def refuse(
    request: ElectLeadersRequest, code: ErrorCode, message: str | None
) -> ElectLeadersResponse:
    """Answer every named partition with one error: v0 has no other place for it.

    Null names no partition: then the error is that of the whole answer, which v0 cannot carry.
    """
    return ElectLeadersResponse(
        error_code=ErrorCode.NONE if request.topic_partitions else code,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(partition_id=number, error_code=code, error_message=message)
                    for number in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


def _result(broker: Broker, topic: str, number: int) -> PartitionResult:
    view = broker.cluster.topic(topic)
    if view is None or not 0 <= number < len(view.partitions):
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif view.partitions[number].leader == view.partitions[number].replicas[0]:
        code = ErrorCode.ELECTION_NOT_NEEDED
    else:
        code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    return PartitionResult(partition_id=number, error_code=code, error_message=code.meaning)
