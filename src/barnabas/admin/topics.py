"""Create, list, describe, grow and delete topics.

A topic is identified by its name, or by its id if the caller has that: 16 bytes, or a
`uuid.UUID`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.admin.config_entries import ConfigSource
from barnabas.admin.controller import ask_controller
from barnabas.client.cluster_client import ANY, ClusterClient, Destination
from barnabas.client.connection import Connection
from barnabas.client.metadata import TopicView
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.model.ids import ZERO_UUID, Uuid
from barnabas.model.request_errors import request_error
from barnabas.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from barnabas.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

TopicId = Uuid | uuid.UUID

FIRST_VERSION_WITH_IDS = 6
"""Of DeleteTopics."""


@dataclass(frozen=True)
class NewTopic:
    """A topic to create; -1 leaves a number to the broker.

    `replica_assignments` maps partitions to their replicas and replaces both numbers.

        NewTopic("orders", num_partitions=6, topic_configs={"retention.ms": "86400000"})
        NewTopic("pinned", replica_assignments={0: [1, 2], 1: [2, 3]})
    """

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    replica_assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    topic_configs: Mapping[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Callers used to other Python clients pass None if they have none.
        object.__setattr__(self, "replica_assignments", self.replica_assignments or {})
        object.__setattr__(self, "topic_configs", self.topic_configs or {})


@dataclass(frozen=True)
class NewPartitions:
    """The total number of partitions of a topic, and the replicas of the new ones.

    NewPartitions(12)
    NewPartitions(total_count=3, new_assignments=[[1, 2]])    # the topic has two by now
    """

    total_count: int
    new_assignments: Sequence[Sequence[int]] | None = None


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One option of a topic that was just created."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """The result for one topic to create; numbers are -1 if the broker is too old to know them."""

    name: str
    topic_id: Uuid
    partitions: int
    replication_factor: int
    error: RequestError | None
    configs: tuple[TopicConfig, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicOutcome:
    """The result of a change to one topic; the name is empty if only the id was known."""

    name: str
    error: RequestError | None
    topic_id: Uuid = ZERO_UUID


async def create_topics(
    client: ClusterClient,
    topics: Iterable[NewTopic],
    *,
    validate_only: bool = False,
    timeout_ms: int = 30_000,
) -> list[CreatedTopic]:
    """Create topics, or only validate them.

    [created] = await create_topics(client, [NewTopic("orders", 6)])
    if created.error is not None: ...
    """
    new = {topic.name: topic for topic in topics}

    async def ask(
        connection: Connection, names: list[str]
    ) -> dict[str, CreatedTopic | RequestError]:
        request = CreateTopicsRequest(
            topics=[_creatable(new[name]) for name in names],
            timeout_ms=timeout_ms,
            validate_only=validate_only,
        )
        response: CreateTopicsResponse = await connection.send(request)
        return {
            result.name: request_error(result.error_code, result.error_message)
            if result.error_code
            else _created(result)
            for result in response.topics
        }

    outcomes = await ask_controller(client, new, ask, timeout_ms=timeout_ms)
    return [
        CreatedTopic(name, ZERO_UUID, -1, -1, outcome)
        if isinstance(outcome, RequestError)
        else outcome
        for name, outcome in outcomes.items()
    ]


def _creatable(topic: NewTopic) -> CreatableTopic:
    placed = topic.replica_assignments
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if placed else topic.num_partitions,
        replication_factor=-1 if placed else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in placed.items()
        ],
        configs=[
            CreatableTopicConfig(name=name, value=None if value is None else str(value))
            for name, value in topic.topic_configs.items()
        ],
    )


def _created(result: CreatableTopicResult) -> CreatedTopic:
    return CreatedTopic(
        result.name,
        result.topic_id,
        result.num_partitions,
        result.replication_factor,
        None,
        tuple(
            TopicConfig(
                config.name,
                config.value,
                ConfigSource.of(config.config_source),
                config.read_only,
                config.is_sensitive,
            )
            for config in result.configs or ()
        ),
    )


async def describe_topics(
    client: ClusterClient, names: Iterable[str] | None, *, to: Destination = ANY
) -> list[TopicView]:
    """Return topics by name, or all of them sorted by name; see `TopicView.error`."""
    wanted = None if names is None else list(names)
    cluster = await client.retrying(lambda: client.refresh(wanted, to=to))
    if wanted is None:
        return [cluster.topics[name] for name in sorted(cluster.topics)]
    return [cluster.topics[name] for name in wanted]


async def create_partitions(
    client: ClusterClient,
    counts: Mapping[str, int | NewPartitions],
    *,
    validate_only: bool = False,
    timeout_ms: int = 30_000,
) -> list[TopicOutcome]:
    """Raise the number of partitions of topics to the given totals.

    await create_partitions(client, {"orders": 12})
    """
    new = {
        name: NewPartitions(count) if isinstance(count, int) else count
        for name, count in counts.items()
    }

    async def ask(connection: Connection, names: list[str]) -> dict[str, RequestError | None]:
        request = CreatePartitionsRequest(
            topics=[
                CreatePartitionsTopic(
                    name=name,
                    count=new[name].total_count,
                    assignments=_assignments(new[name].new_assignments),
                )
                for name in names
            ],
            timeout_ms=timeout_ms,
            validate_only=validate_only,
        )
        response: CreatePartitionsResponse = await connection.send(request)
        return {
            result.name: request_error(result.error_code, result.error_message)
            if result.error_code
            else None
            for result in response.results
        }

    outcomes = await ask_controller(client, new, ask, timeout_ms=timeout_ms)
    return [TopicOutcome(name, outcome) for name, outcome in outcomes.items()]


def _assignments(
    assignments: Sequence[Sequence[int]] | None,
) -> list[CreatePartitionsAssignment] | None:
    if assignments is None:
        return None
    return [CreatePartitionsAssignment(broker_ids=list(replicas)) for replicas in assignments]


async def delete_topics(
    client: ClusterClient, topics: Iterable[str | TopicId], *, timeout_ms: int = 30_000
) -> list[TopicOutcome]:
    """Delete topics, by name or id, with all their records.

    await delete_topics(client, ["orders", uuid.UUID("...")])
    """

    async def ask(
        connection: Connection, wanted: list[str | Uuid]
    ) -> dict[str | Uuid, TopicOutcome | RequestError]:
        named = [topic for topic in wanted if isinstance(topic, str)]
        least = 0 if len(named) == len(wanted) else FIRST_VERSION_WITH_IDS
        version = connection.version_of(DeleteTopicsRequest, at_least=least)
        request = DeleteTopicsRequest(
            topics=[_to_delete(topic) for topic in wanted]
            if version >= FIRST_VERSION_WITH_IDS
            else [],
            topic_names=named,
            timeout_ms=timeout_ms,
        )
        response: DeleteTopicsResponse = await connection.send(request, version=version)
        outcomes: dict[str | Uuid, TopicOutcome | RequestError] = {}
        for result in response.responses:
            # For a request by id, the response has the id, and the name only if we may see it.
            by_id = result.topic_id in wanted
            key = result.topic_id if by_id else (result.name or "")
            outcomes[key] = (
                request_error(result.error_code, result.error_message)
                if result.error_code
                else TopicOutcome(result.name or "", None, result.topic_id)
            )
        return outcomes

    keys = [topic if isinstance(topic, str) else topic_id_of(topic) for topic in topics]
    outcomes = await ask_controller(client, keys, ask, timeout_ms=timeout_ms)
    return [
        outcome
        if isinstance(outcome, TopicOutcome)
        else TopicOutcome(key, outcome)
        if isinstance(key, str)
        else TopicOutcome("", outcome, key)
        for key, outcome in outcomes.items()
    ]


def _to_delete(topic: str | Uuid) -> DeleteTopicState:
    if isinstance(topic, str):
        return DeleteTopicState(name=topic)
    return DeleteTopicState(name=None, topic_id=topic)


def topic_id_of(topic: TopicId) -> Uuid:
    """Return a topic id in the form of the wire."""
    if isinstance(topic, uuid.UUID):
        return topic.bytes
    if not isinstance(topic, bytes) or len(topic) != len(ZERO_UUID):
        raise InvalidValueError(
            f"topic {topic!r}: must be a name, a uuid.UUID or the 16 bytes of an id"
        )
    return topic
