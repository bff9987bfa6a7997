"""ConsumerGroupHeartbeat: join, stay in or leave a group whose partitions the broker assigns."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(broker: Broker, request: Request[ConsumerGroupHeartbeatRequest]) -> None:
    """Let the group's coordinator decide; it responds when its decision is durable."""
    groups, body = broker.groups, request.body
    groups.authorize(request, body.group_id, Operation.READ)
    for topic in body.subscribed_topic_names or ():
        if not broker.allows(request.session, Operation.DESCRIBE, ResourceType.TOPIC, topic):
            raise RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    shard = groups.shard(body.group_id)
    call = groups.call(request)
    if broker.has_acls:  # an expression does not match what its sender may not describe
        sees = partial(broker.sees, request.session, Operation.DESCRIBE, ResourceType.TOPIC)
        call = call._replace(sees=sees)
    groups.apply(shard, shard.machine.handle_consumer_heartbeat(body, call))


def refuse(
    request: ConsumerGroupHeartbeatRequest, code: ErrorCode, message: str | None
) -> ConsumerGroupHeartbeatResponse:
    """Answer with an error."""
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=message)
