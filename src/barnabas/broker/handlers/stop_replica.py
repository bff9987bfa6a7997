"""StopReplica: the controller says which replicas stop, and which of them are deleted.

Before v3 the whole request either deletes or not, and has no leader epochs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.cluster.controller_commands import ControllerConnection
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request

FIRST_STATE_VERSION = 3


async def handle(broker: Broker, request: Request[StopReplicaRequest]) -> StopReplicaResponse:
    """Stop the replicas."""
    broker.check_cluster_action(request.session)
    body = request.body
    if request.version < FIRST_STATE_VERSION:
        named = [(each.topic_name, each.partition_index) for each in body.ungrouped_partitions]
        named += [
            (topic.name, number) for topic in body.topics for number in topic.partition_indexes
        ]
        topics: dict[str, StopReplicaTopicState] = {}
        for name, number in named:
            topic = topics.setdefault(name, StopReplicaTopicState(topic_name=name))
            topic.partition_states.append(
                StopReplicaPartitionState(
                    partition_index=number, delete_partition=body.delete_partitions
                )
            )
        body.topic_states = list(topics.values())
    connection = ControllerConnection(request.session.listener, request.session.number)
    response = await broker.control.take(body, connection)
    assert isinstance(response, StopReplicaResponse)
    return response


def refuse(
    request: StopReplicaRequest, code: ErrorCode, message: str | None
) -> StopReplicaResponse:
    """Answer with an error."""
    return StopReplicaResponse(error_code=code)
