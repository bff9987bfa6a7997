"""Topics, as `KafkaAdminClient` creates, describes, grows and deletes them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from barnabas.admin import topic_descriptions
from barnabas.admin import topics as calls
from barnabas.admin.answers import (
    Answer,
    code_of,
    id_text,
    message_of,
    names_of,
    raise_first,
)
from barnabas.admin.config_sources import ConfigSourceType
from barnabas.admin.topic_descriptions import PageStart, PartitionDescription, TopicDescription
from barnabas.admin.topics import CreatedTopic, NewPartitions, NewTopic
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import KafkaTimeoutError
from barnabas.model.errors import InvalidValueError

NewTopics = Iterable[NewTopic] | Iterable[str] | Mapping[str, Mapping[str, Any]]

POLL_S = 0.1
TOPIC_FIELDS = ("num_partitions", "replication_factor", "assignments", "configs")


async def list_topics(client: ClusterClient) -> list[str]:
    """Return the names of all topics, sorted.

    admin.list_topics()    # ['orders', 'payments']
    """
    return await topic_descriptions.list_topics(client)


async def describe_topics(
    client: ClusterClient, topics: Iterable[str | uuid.UUID] | None = None
) -> list[dict[str, Any]]:
    """Return a dict per topic, by names or ids; None stands for all.

    A topic that does not exist has its `error_code` (3, or 100 for an id).

        [orders] = admin.describe_topics(["orders"])
        orders["partitions"][0]["leader_id"]
    """
    described = await topic_descriptions.describe_topics(client, topics, authorized_operations=True)
    return [
        {
            **_topic(topic),
            "topic_id": id_text(topic.topic_id),
            "authorized_operations": names_of(topic.authorized_operations),
        }
        for topic in described
    ]


def _topic(topic: TopicDescription) -> dict[str, Any]:
    return {
        "error_code": code_of(topic.error),
        "name": topic.name,
        "is_internal": topic.internal,
        "partitions": [_partition(each) for each in topic.partitions],
    }


def _partition(partition: PartitionDescription) -> dict[str, Any]:
    return {
        "error_code": code_of(partition.error),
        "partition_index": partition.index,
        "leader_id": partition.leader_id,
        "leader_epoch": partition.leader_epoch,
        "replica_nodes": list(partition.replicas),
        "isr_nodes": list(partition.in_sync),
        "offline_replicas": list(partition.offline),
    }


async def describe_topic_partitions(
    client: ClusterClient,
    topics: Sequence[str],
    response_partition_limit: int = 2000,
    cursor: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return one page of the partitions of topics, and the cursor of the next one (or None).

    page = admin.describe_topic_partitions(["orders"], response_partition_limit=100)
    more = admin.describe_topic_partitions(["orders"], cursor=page["next_cursor"])
    """
    start = None if cursor is None else PageStart(cursor["topic_name"], cursor["partition_index"])
    page = await topic_descriptions.describe_topic_partitions(
        client, topics, limit=response_partition_limit, start=start
    )
    following = page.next
    return {
        "topics": [
            {
                **_topic(topic),
                "topic_id": uuid.UUID(bytes=topic.topic_id),
                "partitions": [
                    {
                        **_partition(each),
                        "eligible_leader_replicas": list(each.eligible_leaders or ()) or None,
                        "last_known_elr": list(each.last_known_eligible or ()) or None,
                    }
                    for each in topic.partitions
                ],
                "topic_authorized_operations": _bits(topic),
            }
            for topic in page.topics
        ],
        "next_cursor": None
        if following is None
        else {"topic_name": following.topic, "partition_index": following.partition},
    }


def _bits(topic: TopicDescription) -> int:
    if topic.authorized_operations is None:
        return -(1 << 31)
    return sum(1 << operation for operation in topic.authorized_operations)


async def create_topics(
    client: ClusterClient,
    new_topics: NewTopics,
    timeout_ms: int | None = None,
    validate_only: bool = False,
    raise_errors: bool = True,
    wait_for_metadata: bool = False,
) -> Answer:
    """Create topics: names, NewTopic objects, or `{name: {num_partitions, …}}`.

    Raises the first failure unless `raise_errors` is False. With `wait_for_metadata`, returns when
    all partitions have leaders.

        admin.create_topics([NewTopic("orders", num_partitions=6, replication_factor=3)])
        admin.create_topics({"audit": {"configs": {"cleanup.policy": "compact"}}})
    """
    if validate_only and wait_for_metadata:
        raise InvalidValueError("validate_only and wait_for_metadata must not be set together")
    wanted = _new_topics(new_topics)
    created = await calls.create_topics(
        client,
        wanted,
        validate_only=validate_only,
        timeout_ms=timeout_ms or int(client.request_timeout_ms),
    )
    if raise_errors:
        raise_first(topic.error for topic in created)
    if wait_for_metadata:
        await wait_for_topics(client, [topic.name for topic in wanted])
    return Answer(topics=[_created(topic) for topic in created])


def _new_topics(given: NewTopics) -> list[NewTopic]:
    if isinstance(given, str):
        raise InvalidValueError(f"new_topics {given!r}: must be a list of topics")
    if isinstance(given, Mapping):
        return [_new_topic(name, fields) for name, fields in given.items()]
    topics = [NewTopic(each) if isinstance(each, str) else each for each in given]
    if not topics:
        raise InvalidValueError("new_topics is empty: there is no topic to create")
    for topic in topics:
        if not isinstance(topic, NewTopic):
            raise InvalidValueError(f"new_topics has {topic!r}: must be a name or a NewTopic")
    return topics


def _new_topic(name: str, fields: Mapping[str, Any]) -> NewTopic:
    unknown = [field for field in fields if field not in TOPIC_FIELDS]
    if unknown:
        raise InvalidValueError(
            f"topic {name!r}: field {unknown[0]!r}: must be one of {', '.join(TOPIC_FIELDS)}"
        )
    return NewTopic(
        name,
        fields.get("num_partitions", -1),
        fields.get("replication_factor", -1),
        fields.get("assignments") or {},
        fields.get("configs") or {},
    )


def _created(topic: CreatedTopic) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "name": topic.name,
        "topic_id": id_text(topic.topic_id),
        "error_code": code_of(topic.error),
        "error_message": message_of(topic.error),
        "topic_config_error_code": 0,
        "num_partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
    }
    if topic.configs:
        answer["configs"] = {
            config.name: {
                "value": config.value,
                "read_only": config.read_only,
                "config_source": ConfigSourceType(config.source).name,
                "is_sensitive": config.sensitive,
            }
            for config in topic.configs
        }
    return answer


async def wait_for_topics(
    client: ClusterClient, topic_names: Iterable[str], timeout_ms: float = 10_000
) -> None:
    """Wait until topics exist and all their partitions have leaders.

    Raises KafkaTimeoutError, naming what is missing, when time is up.

        admin.wait_for_topics(["orders"], timeout_ms=5000)
    """
    names = list(topic_names)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_ms / 1000
    while True:
        found = {
            topic.name: _missing(topic)
            for topic in await topic_descriptions.describe_topics(client, names)
        }
        pending = {name: found.get(name, "unknown") for name in names}
        pending = {name: why for name, why in pending.items() if why}
        if not pending:
            return
        if loop.time() + POLL_S > deadline:
            raise KafkaTimeoutError(f"topics not ready after {timeout_ms:g} ms: {pending}")
        await asyncio.sleep(POLL_S)


def _missing(topic: TopicDescription) -> str:
    """Return what a topic still lacks; empty if it is ready."""
    if topic.error is not None:
        return topic.error.code.name
    if not topic.partitions:
        return "no partitions"
    without = [str(each.index) for each in topic.partitions if each.leader_id < 0]
    return f"no leader of partition {', '.join(without)}" if without else ""


async def create_partitions(
    client: ClusterClient,
    topic_partitions: Mapping[str, int | NewPartitions | Mapping[str, Any]],
    timeout_ms: int | None = None,
    validate_only: bool = False,
    raise_errors: bool = True,
) -> Answer:
    """Increase the partition counts of topics to totals.

    admin.create_partitions({"orders": 12})
    admin.create_partitions({"orders": {"count": 3, "assignments": [[1, 2]]}})
    """
    wanted = {
        name: NewPartitions(given["count"], given.get("assignments"))
        if isinstance(given, Mapping)
        else given
        for name, given in topic_partitions.items()
    }
    outcomes = await calls.create_partitions(
        client,
        wanted,
        validate_only=validate_only,
        timeout_ms=timeout_ms or int(client.request_timeout_ms),
    )
    if raise_errors:
        raise_first(outcome.error for outcome in outcomes)
    return Answer(
        results=[
            Answer(
                name=outcome.name,
                error_code=code_of(outcome.error),
                error_message=message_of(outcome.error),
            )
            for outcome in outcomes
        ]
    )


async def delete_topics(
    client: ClusterClient,
    topics: Iterable[str | uuid.UUID],
    timeout_ms: int | None = None,
    raise_errors: bool = True,
) -> Answer:
    """Delete topics, by names or ids.

    admin.delete_topics(["orders"])
    """
    if isinstance(topics, str):
        raise InvalidValueError(f"topics {topics!r}: must be a list of topics")
    outcomes = await calls.delete_topics(
        client, topics, timeout_ms=timeout_ms or int(client.request_timeout_ms)
    )
    if raise_errors:
        raise_first(outcome.error for outcome in outcomes)
    return Answer(
        topics=[
            {
                "name": outcome.name or None,
                "topic_id": id_text(outcome.topic_id),
                "error_code": code_of(outcome.error),
                "error_message": message_of(outcome.error),
            }
            for outcome in outcomes
        ]
    )
