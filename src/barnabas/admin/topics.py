"""Create, describe, grow and delete topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from barnabas.client.cluster import TopicView
from barnabas.client.switchboard import CONTROLLER, Switchboard
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import Uuid
from barnabas.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from barnabas.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.wire.schema import Message

Response = TypeVar("Response")


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; -1 leaves a number to the broker.

    `assignments` maps partitions to their replicas and takes the place of both numbers.
    """

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """What became of one topic to create; numbers are -1 where the broker is too old to tell."""

    name: str
    topic_id: Uuid
    partitions: int
    replication_factor: int
    error: RequestError | None


@dataclass(frozen=True, slots=True)
class TopicOutcome:
    """What became of a change to one topic."""

    name: str
    error: RequestError | None


async def create_topics(
    board: Switchboard,
    topics: Iterable[NewTopic],
    *,
    validate_only: bool = False,
    timeout_ms: int = 30_000,
) -> list[CreatedTopic]:
    """Create topics, or only check that they could be."""
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=topic.name,
                num_partitions=-1 if topic.assignments else topic.partitions,
                replication_factor=-1 if topic.assignments else topic.replication_factor,
                assignments=[
                    CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
                    for index, replicas in topic.assignments.items()
                ],
                configs=[
                    CreatableTopicConfig(name=name, value=value)
                    for name, value in topic.configs.items()
                ],
            )
            for topic in topics
        ],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )
    response: CreateTopicsResponse = await _ask_controller(
        board, request, timeout_ms, lambda response: response.topics
    )
    return [
        CreatedTopic(
            topic.name,
            topic.topic_id,
            topic.num_partitions,
            topic.replication_factor,
            _failure(topic.error_code, topic.error_message),
        )
        for topic in response.topics
    ]


async def describe_topics(board: Switchboard, names: Iterable[str] | None) -> list[TopicView]:
    """Return topics by name, or all of them in the order of their names; see `TopicView.error`."""
    wanted = None if names is None else list(names)
    cluster = await board.retrying(lambda: board.refresh(wanted))
    if wanted is None:
        return [cluster.topics[name] for name in sorted(cluster.topics)]
    return [cluster.topics[name] for name in wanted]


async def create_partitions(
    board: Switchboard,
    counts: Mapping[str, int],
    *,
    validate_only: bool = False,
    timeout_ms: int = 30_000,
) -> list[TopicOutcome]:
    """Raise the number of partitions of topics to the given totals."""
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(name=name, count=count, assignments=None)
            for name, count in counts.items()
        ],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )
    response: CreatePartitionsResponse = await _ask_controller(
        board, request, timeout_ms, lambda response: response.results
    )
    return [
        TopicOutcome(result.name, _failure(result.error_code, result.error_message))
        for result in response.results
    ]


async def delete_topics(
    board: Switchboard, names: Iterable[str], *, timeout_ms: int = 30_000
) -> list[TopicOutcome]:
    """Delete topics with all their records."""
    wanted = list(names)

    async def attempt() -> DeleteTopicsResponse:
        connection = await board.connection(CONTROLLER)
        version = connection.version_of(DeleteTopicsRequest)
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in wanted] if version >= 6 else [],
            topic_names=wanted,
            timeout_ms=timeout_ms,
        )
        response: DeleteTopicsResponse = await connection.send(request, version=version)
        _check_controller(response.responses)
        return response

    response = await board.retrying(attempt, timeout_ms=timeout_ms)
    return [
        TopicOutcome(result.name or "", _failure(result.error_code, result.error_message))
        for result in response.responses
    ]


async def _ask_controller(
    board: Switchboard,
    request: Message,
    timeout_ms: int,
    results: Callable[[Any], Iterable[Any]],
) -> Any:
    """Send to the controller, and follow it when it has moved."""

    async def attempt() -> Any:
        response = await board.send(request, CONTROLLER)
        _check_controller(results(response))
        return response

    return await board.retrying(attempt, timeout_ms=timeout_ms)


def _check_controller(results: Iterable[Any]) -> None:
    if any(result.error_code == ErrorCode.NOT_CONTROLLER for result in results):
        raise RequestError(ErrorCode.NOT_CONTROLLER)


def _failure(error_code: int, message: str | None) -> RequestError | None:
    return RequestError(ErrorCode.of(error_code), message) if error_code else None
