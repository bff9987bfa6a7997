"""The calls of `AIOKafkaAdminClient` that take aiokafka's arguments and return its results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.admin import (
    cluster,
    configs,
    coordinators,
    group_offsets,
    groups,
    offsets,
    topic_descriptions,
)
from barnabas.admin import topics as topic_calls
from barnabas.admin.acls import NOT_REQUESTED
from barnabas.admin.answers import Answer, code_of, message_of, raise_first
from barnabas.admin.config_entries import Resource
from barnabas.admin.config_sources import ConfigResource
from barnabas.admin.coordinators import Kind
from barnabas.admin.groups import DEAD, GroupDescription
from barnabas.admin.offsets import RecordsToDelete
from barnabas.admin.settling import settled_or_raise
from barnabas.admin.topics import NewPartitions, NewTopic, TopicOutcome
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import GroupIdNotFoundError
from barnabas.structs import OffsetAndMetadata


async def create_topics(
    client: ClusterClient,
    new_topics: Iterable[NewTopic],
    timeout_ms: int | None = None,
    validate_only: bool = False,
) -> Answer:
    """Create topics; the response's `topic_errors` has (topic, error code, message) of each.

    answer = await admin.create_topics([NewTopic("orders", 6, 3)])
    """
    created = await topic_calls.create_topics(
        client, new_topics, validate_only=validate_only, timeout_ms=_timeout(client, timeout_ms)
    )
    return _answer([TopicOutcome(topic.name, topic.error, topic.topic_id) for topic in created])


async def delete_topics(
    client: ClusterClient, topics: Iterable[str], timeout_ms: int | None = None
) -> Answer:
    """Delete topics; the response's `topic_error_codes` has (topic, error code) of each.

    await admin.delete_topics(["orders"])
    """
    return _answer(
        await topic_calls.delete_topics(client, topics, timeout_ms=_timeout(client, timeout_ms))
    )


async def create_partitions(
    client: ClusterClient,
    topic_partitions: Mapping[str, NewPartitions],
    timeout_ms: int | None = None,
    validate_only: bool = False,
) -> Answer:
    """Increase the partition counts of topics to totals; raises the first failure.

    await admin.create_partitions({"orders": NewPartitions(12)})
    """
    outcomes = await topic_calls.create_partitions(
        client,
        topic_partitions,
        validate_only=validate_only,
        timeout_ms=_timeout(client, timeout_ms),
    )
    raise_first(outcome.error for outcome in outcomes)
    return _answer(outcomes)


def _answer(outcomes: Iterable[TopicOutcome]) -> Answer:
    return Answer(
        throttle_time_ms=0,
        topics=[
            {
                "name": outcome.name,
                "error_code": code_of(outcome.error),
                "error_message": message_of(outcome.error),
            }
            for outcome in outcomes
        ],
    )


def _timeout(client: ClusterClient, timeout_ms: int | None) -> int:
    return timeout_ms or int(client.request_timeout_ms)


async def list_topics(client: ClusterClient) -> list[str]:
    """Return the names of all topics, sorted."""
    return await topic_descriptions.list_topics(client)


async def describe_topics(
    client: ClusterClient, topics: Iterable[str] | None = None
) -> list[dict[str, Any]]:
    """Return a dict per topic (None: all), each with its `error_code`.

    [orders] = await admin.describe_topics(["orders"])
    orders["partitions"][0]["leader"]
    """
    return [
        {
            "error_code": code_of(topic.error),
            "topic": topic.name,
            "is_internal": topic.internal,
            "partitions": [
                {
                    "error_code": code_of(partition.error),
                    "partition": partition.index,
                    "leader": partition.leader_id,
                    "replicas": list(partition.replicas),
                    "isr": list(partition.in_sync),
                    "offline_replicas": list(partition.offline),
                }
                for partition in topic.partitions
            ],
        }
        for topic in await topic_descriptions.describe_topics(client, topics)
    ]


async def describe_cluster(client: ClusterClient) -> dict[str, Any]:
    """Return brokers, cluster id and controller.

    (await admin.describe_cluster())["brokers"]
    """
    described = await cluster.describe_cluster(client)
    return {
        "throttle_time_ms": 0,
        "brokers": [
            {"node_id": each.node_id, "host": each.host, "port": each.port, "rack": each.rack}
            for each in described.brokers
        ],
        "cluster_id": described.cluster_id,
        "controller_id": -1 if described.controller_id is None else described.controller_id,
    }


async def describe_configs(
    client: ClusterClient,
    config_resources: Iterable[ConfigResource],
    include_synonyms: bool = False,
) -> list[Answer]:
    """Return a response per broker that was asked; its `resources` has a tuple per resource.

    [answer] = await admin.describe_configs([ConfigResource("topic", "orders")])
    [(code, message, kind, name, options)] = answer.resources
    """
    wanted = {
        each.resource: list(each.configs) if each.configs else None for each in config_resources
    }
    described = await configs.describe_resources(client, wanted, synonyms=include_synonyms)
    rows: dict[Resource, tuple[Any, ...]] = {}
    for resource, outcome in described.items():
        error = outcome if isinstance(outcome, RequestError) else None
        options = [
            (
                entry.name,
                entry.value,
                entry.read_only,
                int(entry.source),
                entry.sensitive,
                [(name, value, int(source)) for name, value, source in entry.synonyms],
            )
            for entry in (() if isinstance(outcome, RequestError) else outcome)
        ]
        row = (code_of(error), message_of(error), int(resource.type), resource.name, options)
        rows[resource] = row
    return _by_broker(rows)


async def alter_configs(
    client: ClusterClient, config_resources: Iterable[ConfigResource]
) -> list[Answer]:
    """Set exactly the named options of resources: others return to their defaults.

    await admin.alter_configs([ConfigResource("topic", "orders", {"retention.ms": "60000"})])
    """
    wanted = {each.resource: _options(each) for each in config_resources}
    outcomes = await configs.replace_resources(client, wanted)
    rows = {
        resource: (code_of(error), message_of(error), int(resource.type), resource.name)
        for resource, error in outcomes.items()
    }
    return _by_broker(rows)


def _options(given: ConfigResource) -> dict[str, str | None]:
    if not isinstance(given.configs, Mapping):
        raise InvalidValueError(f"{given!r}: configs must be a dict of option: value")
    return {name: None if value is None else str(value) for name, value in given.configs.items()}


def _by_broker(rows: Mapping[Resource, tuple[Any, ...]]) -> list[Answer]:
    asked: dict[Any, list[tuple[Any, ...]]] = {}
    for resource, row in rows.items():
        asked.setdefault(resource.destination, []).append(row)
    return [Answer(throttle_time_ms=0, resources=each) for each in asked.values()]


async def describe_consumer_groups(
    client: ClusterClient,
    group_ids: Iterable[str],
    group_coordinator_id: int | None = None,
    include_authorized_operations: bool = False,
) -> list[Answer]:
    """Return a response per coordinator; its `groups` has a tuple per group.

    Coordinators are always looked up, as they move: `group_coordinator_id` is not needed.

        [answer] = await admin.describe_consumer_groups(["readers"])
        [(code, group, state, protocol_type, protocol, members, operations)] = answer.groups
    """
    described = await groups.describe_groups(
        client, group_ids, authorized_operations=include_authorized_operations
    )
    answers: dict[int, list[tuple[Any, ...]]] = {}
    for name, outcome in described.items():
        if isinstance(outcome, RequestError):
            # A group that does not exist is dead, which is not an error in the protocol.
            code = 0 if isinstance(outcome, GroupIdNotFoundError) else code_of(outcome)
            answers.setdefault(-1, []).append((code, name, DEAD, "", "", [], NOT_REQUESTED))
        else:
            answers.setdefault(outcome.coordinator_id, []).append(_group(outcome))
    return [Answer(throttle_time_ms=0, groups=each) for each in answers.values()]


def _group(group: GroupDescription) -> tuple[Any, ...]:
    operations = group.authorized_operations
    return (
        0,
        group.name,
        group.state,
        group.protocol_type,
        group.assignor,
        [
            (each.member_id, each.client_id, each.host, each.metadata, each.assignment)
            for each in group.members
        ],
        NOT_REQUESTED if operations is None else sum(1 << each for each in operations),
    )


async def list_consumer_groups(
    client: ClusterClient, broker_ids: Iterable[int] | None = None
) -> list[tuple[str, str]]:
    """Return (group, protocol type) pairs, of all brokers or some."""
    listed = await groups.list_groups(client, broker_ids=broker_ids)
    return [(group.name, group.protocol_type) for group in listed]


async def find_coordinator(client: ClusterClient, group_id: str, coordinator_type: int = 0) -> int:
    """Return the node id of the coordinator of a group (0) or a transactional id (1)."""
    kind = Kind(coordinator_type)
    return await client.retrying(lambda: coordinators.find_coordinator(client, group_id, kind))


async def list_consumer_group_offsets(
    client: ClusterClient,
    group_id: str,
    group_coordinator_id: int | None = None,
    partitions: Iterable[TopicPartition] | None = None,
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the committed offsets of a group, for all partitions or some (-1: none).

    await admin.list_consumer_group_offsets("readers")
    """
    wanted = list(partitions or ()) or None
    found = await group_offsets.list_group_offsets(client, {group_id: wanted})
    return {
        partition: OffsetAndMetadata(each.offset, each.metadata)
        for partition, each in settled_or_raise(settled_or_raise(found)[group_id]).items()
    }


async def delete_records(
    client: ClusterClient,
    records_to_delete: Mapping[TopicPartition, RecordsToDelete],
    timeout_ms: int | None = None,
) -> dict[TopicPartition, int]:
    """Delete the records before offsets, and return the new log starts; raises on failure.

    await admin.delete_records({TopicPartition("orders", 0): RecordsToDelete(5000)})
    """
    before = {
        TopicPartition(*partition): each.before_offset
        for partition, each in records_to_delete.items()
    }
    return settled_or_raise(
        await offsets.delete_records(client, before, timeout_ms=_timeout(client, timeout_ms))
    )
