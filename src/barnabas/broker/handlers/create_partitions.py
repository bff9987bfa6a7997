"""CreatePartitions: increase the number of partitions of topics."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.quotas.controller_mutations import ControllerMutations
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request

FIRST_STRICT_VERSION = 3
"""Clients of older versions do not know the error of an exceeded mutation quota."""


async def handle(
    broker: Broker, request: Request[CreatePartitionsRequest]
) -> CreatePartitionsResponse:
    """Extend each topic on its own."""
    broker.check_controller()
    response = CreatePartitionsResponse()
    mutations = broker.quotas.mutations(request, strict=request.version >= FIRST_STRICT_VERSION)
    counts = Counter(topic.name for topic in request.body.topics)
    for topic in request.body.topics:
        result = CreatePartitionsTopicResult(name=topic.name)
        try:
            if counts[topic.name] > 1:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST, f"topic {topic.name!r} is named twice"
                )
            await _extend(broker, request, topic, mutations)
        except RequestError as refusal:
            result.error_code, result.error_message = refusal.code, refusal.message
        response.results.append(result)
    response.throttle_time_ms = mutations.throttle_ms(broker.timer.now_ms())
    return response


def refuse(
    request: CreatePartitionsRequest, code: ErrorCode, message: str | None
) -> CreatePartitionsResponse:
    """Answer every topic with one error."""
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=message)
            for topic in request.topics
        ]
    )


async def _extend(
    broker: Broker,
    request: Request[CreatePartitionsRequest],
    topic: CreatePartitionsTopic,
    mutations: ControllerMutations,
) -> None:
    if not broker.allows(request.session, Operation.ALTER, ResourceType.TOPIC, topic.name):
        raise RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    await broker.topics.create_partitions(
        topic.name,
        topic.count,
        [each.broker_ids for each in topic.assignments or ()],
        dry_run=request.body.validate_only,
        before=lambda added: mutations.record(added, broker.timer.now_ms()),
    )
