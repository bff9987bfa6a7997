"""LeaderAndIsr: the controller assigns the partitions that this broker leads and follows.

v2 groups partitions by topic, v5 added topic ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.cluster.controller_commands import ControllerConnection
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request

FIRST_GROUPED_VERSION = 2
FIRST_ID_VERSION = 5


async def handle(broker: Broker, request: Request[LeaderAndIsrRequest]) -> LeaderAndIsrResponse:
    """Apply the roles."""
    broker.check_cluster_action(request.session)
    body = request.body
    if request.version < FIRST_GROUPED_VERSION:
        topics: dict[str, LeaderAndIsrTopicState] = {}
        for state in body.ungrouped_partition_states:
            topic = topics.setdefault(
                state.topic_name, LeaderAndIsrTopicState(topic_name=state.topic_name)
            )
            topic.partition_states.append(state)
        body.topic_states = list(topics.values())
    connection = ControllerConnection(request.session.listener, request.session.number)
    response = await broker.control.take(body, connection)
    assert isinstance(response, LeaderAndIsrResponse)
    if request.version < FIRST_ID_VERSION:
        response.partition_errors = [
            LeaderAndIsrPartitionError(
                topic_name=asked.topic_name,
                partition_index=each.partition_index,
                error_code=each.error_code,
            )
            for asked, answered in zip(body.topic_states, response.topics, strict=False)
            for each in answered.partition_errors
        ]
        response.topics = []
    return response


def refuse(
    request: LeaderAndIsrRequest, code: ErrorCode, message: str | None
) -> LeaderAndIsrResponse:
    """Answer with an error."""
    return LeaderAndIsrResponse(error_code=code)
