"""AlterPartitionReassignments: move partitions to other brokers, or end a move.

With one broker every replica is where it can be: the set that a partition has already is reached
at once, and any other names a broker that is not there. Between the directories of a broker
replicas move by AlterReplicaLogDirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.request import Request


def handle(
    broker: Broker, request: Request[AlterPartitionReassignmentsRequest]
) -> AlterPartitionReassignmentsResponse:
    """Answer for each partition that it is where it should be, or why it cannot get there."""
    if not broker.allows(request.session, Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        raise RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    fixed_factor = not request.body.allow_replication_factor_change
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=not fixed_factor,
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    _answer(broker, topic.name, partition, fixed_factor)
                    for partition in topic.partitions
                ],
            )
            for topic in request.body.topics
        ],
    )


def refuse(
    request: AlterPartitionReassignmentsRequest, code: ErrorCode, message: str | None
) -> AlterPartitionReassignmentsResponse:
    """Answer with an error."""
    return AlterPartitionReassignmentsResponse(error_code=code, error_message=message)


def _answer(
    broker: Broker, topic: str, partition: ReassignablePartition, fixed_factor: bool
) -> ReassignablePartitionResponse:
    try:
        _check(broker, topic, partition, fixed_factor)
    except RequestError as refusal:
        return ReassignablePartitionResponse(
            partition_index=partition.partition_index,
            error_code=refusal.code,
            error_message=refusal.message,
        )
    return ReassignablePartitionResponse(
        partition_index=partition.partition_index, error_message=None
    )


def _check(
    broker: Broker, topic: str, partition: ReassignablePartition, fixed_factor: bool
) -> None:
    """Refuse what does not come down to the replicas that the partition has."""
    view = broker.cluster.topic(topic)
    if view is None or not 0 <= partition.partition_index < len(view.partitions):
        raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    wanted = partition.replicas
    if wanted is None:
        raise RequestError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    if not wanted or len(set(wanted)) != len(wanted):
        raise RequestError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"replicas {wanted} are none, or name one twice"
        )
    unknown = [number for number in wanted if number not in broker.cluster.brokers]
    if unknown:
        raise RequestError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"brokers {unknown} are not of this cluster"
        )
    present = view.partitions[partition.partition_index].replicas
    if fixed_factor and len(wanted) != len(present):
        raise RequestError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{len(wanted)} replicas instead of {len(present)}",
        )
    if set(wanted) != set(present):
        raise RequestError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"replicas {list(present)} cannot move to {wanted}",
        )
