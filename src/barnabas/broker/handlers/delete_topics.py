"""DeleteTopics: by name, from v6 on also by id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.diary import subjects
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import ZERO_UUID, Uuid
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request

FIRST_STRICT_VERSION = 5
"""Clients of older versions do not know the error of an exceeded mutation quota."""


async def handle(broker: Broker, request: Request[DeleteTopicsRequest]) -> DeleteTopicsResponse:
    """Delete each topic; one that cannot be deleted does not affect the others."""
    broker.check_controller()
    if not broker.options.delete_topic_enable:
        # Older clients do not know the specific code.
        raise RequestError(
            ErrorCode.TOPIC_DELETION_DISABLED
            if request.version >= 3
            else ErrorCode.INVALID_REQUEST,
            "delete.topic.enable=false on this broker",
        )
    response = DeleteTopicsResponse()
    mutations = broker.quotas.mutations(request, strict=request.version >= FIRST_STRICT_VERSION)
    seen: set[str] = set()
    for wanted in _wanted(request.body):
        try:
            name = _resolve(broker, wanted)
            if wanted.name is None:
                # The name behind an id is told to those who may describe the topic.
                _authorize(broker, request, Operation.DESCRIBE, name)
                wanted = DeleteTopicState(name=name, topic_id=wanted.topic_id)
            if name in seen:
                raise RequestError(ErrorCode.INVALID_REQUEST, f"topic {name!r} is named twice")
            seen.add(name)
            topic = broker.cluster.topic(name)
            _authorize(broker, request, Operation.DELETE, name)
            if topic is not None:
                mutations.record(len(topic.partitions), broker.timer.now_ms())
            await broker.topics.delete(name, request.body.timeout_ms)
            told = {"client_id": request.client_id or ""}
            broker.note_client("topic.deleted", subjects.topic(name), request.session, told)
            topic_id = topic.topic_id if topic is not None else wanted.topic_id
            response.responses.append(DeletableTopicResult(name=name, topic_id=topic_id))
        except RequestError as refusal:
            response.responses.append(_failed(wanted, refusal.code, refusal.message))
    response.throttle_time_ms = mutations.throttle_ms(broker.timer.now_ms())
    return response


def refuse(
    request: DeleteTopicsRequest, code: ErrorCode, message: str | None
) -> DeleteTopicsResponse:
    """Answer every topic with one error."""
    return DeleteTopicsResponse(
        responses=[_failed(each, code, message) for each in _wanted(request)]
    )


def _wanted(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    return [*(DeleteTopicState(name=name) for name in request.topic_names), *request.topics]


def _resolve(broker: Broker, wanted: DeleteTopicState) -> str:
    if wanted.name is not None:
        if wanted.topic_id != ZERO_UUID:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "a topic must be given by name or by id, not both"
            )
        return wanted.name
    return _name_of(broker, wanted.topic_id)


def _name_of(broker: Broker, topic_id: Uuid) -> str:
    topic = broker.cluster.topic_by_id(topic_id)
    if topic is None:
        raise RequestError(ErrorCode.UNKNOWN_TOPIC_ID)
    return topic.name


def _authorize(
    broker: Broker, request: Request[DeleteTopicsRequest], operation: Operation, name: str
) -> None:
    if not broker.allows(request.session, operation, ResourceType.TOPIC, name):
        raise RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _failed(wanted: DeleteTopicState, code: ErrorCode, message: str | None) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=wanted.name, topic_id=wanted.topic_id, error_code=code, error_message=message
    )
