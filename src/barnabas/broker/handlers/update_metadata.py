"""UpdateMetadata: the controller sends the live brokers and the leaders. v5 groups by topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.cluster.controller_commands import ControllerConnection
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.update_metadata import (
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request

FIRST_GROUPED_VERSION = 5


async def handle(broker: Broker, request: Request[UpdateMetadataRequest]) -> UpdateMetadataResponse:
    """Apply the update."""
    broker.check_cluster_action(request.session)
    body = request.body
    if request.version < FIRST_GROUPED_VERSION:
        topics: dict[str, UpdateMetadataTopicState] = {}
        for state in body.ungrouped_partition_states:
            topic = topics.setdefault(
                state.topic_name, UpdateMetadataTopicState(topic_name=state.topic_name)
            )
            topic.partition_states.append(state)
        body.topic_states = list(topics.values())
    connection = ControllerConnection(request.session.listener, request.session.number)
    response = await broker.control.take(body, connection)
    assert isinstance(response, UpdateMetadataResponse)
    return response


def refuse(
    request: UpdateMetadataRequest, code: ErrorCode, message: str | None
) -> UpdateMetadataResponse:
    """Answer with an error."""
    return UpdateMetadataResponse(error_code=code)
