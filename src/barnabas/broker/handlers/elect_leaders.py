"""ElectLeaders: elect the preferred replica (or, if unclean, any)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.controller.states import ControllerState
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request
    from barnabas.controller.term import Term


PREFERRED, UNCLEAN = 0, 1


async def handle(broker: Broker, request: Request[ElectLeadersRequest]) -> ElectLeadersResponse:
    """Hold elections; null means all partitions, without those that need no election."""
    body = request.body
    if not broker.allows_cluster(request.session, Operation.ALTER):
        denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        response = refuse(body, denied, denied.meaning)
        response.error_code = denied if request.version > 0 else ErrorCode.NONE
        return response
    if body.election_type not in (PREFERRED, UNCLEAN):
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"election type {body.election_type}: must be 0 or 1"
        )
    named = None
    if body.topic_partitions is not None:
        named = [
            TopicPartition(topic.topic, number)
            for topic in body.topic_partitions
            for number in topic.partitions
        ]

    async def elect(term: Term) -> dict[TopicPartition, ErrorCode]:
        keys = list(term.knowledge.all_partitions) if named is None else named
        if body.election_type == UNCLEAN:
            return await term.balance.elect_unclean(keys)
        return await term.balance.elect_preferred(keys)

    answers = await broker.controller.call(elect, ControllerState.MANUAL_LEADER_BALANCE)
    topics: dict[str, ReplicaElectionResult] = {}
    for key, code in answers.items():
        if named is None and code is ErrorCode.ELECTION_NOT_NEEDED:
            continue
        topic = topics.setdefault(key.topic, ReplicaElectionResult(topic=key.topic))
        topic.partition_result.append(
            PartitionResult(
                partition_id=key.partition,
                error_code=code,
                error_message=code.meaning if code is not ErrorCode.NONE else None,
            )
        )
    return ElectLeadersResponse(replica_election_results=list(topics.values()))


def refuse(
    request: ElectLeadersRequest, code: ErrorCode, message: str | None
) -> ElectLeadersResponse:
    """Answer every named partition with one error: v0 has no other field for it.

    Null names no partition: then the error is that of the whole response, which v0 lacks.
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
