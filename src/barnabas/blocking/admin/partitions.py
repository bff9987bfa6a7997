"""Partitions, as `KafkaAdminClient` reassigns and truncates them and looks up their offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from barnabas.admin import offsets
from barnabas.admin import reassignments as calls
from barnabas.admin.answers import (
    Answer,
    code_of,
    message_of,
    partitions_of,
    raise_first,
)
from barnabas.admin.numbered import chosen
from barnabas.admin.offsets import FoundOffset, OffsetSpec
from barnabas.admin.reassignments import ElectionType
from barnabas.admin.settling import settled_or_raise
from barnabas.admin.topic_descriptions import describe_topics
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.isolation import READ_COMMITTED
from barnabas.structs import OffsetAndTimestamp

Partitions = Mapping[str, Iterable[int]] | Iterable[str] | None

ISOLATION_LEVELS = ("read_uncommitted", "read_committed")


async def chosen_partitions(client: ClusterClient, given: Partitions) -> list[TopicPartition]:
    """Parse `{topic: [partition, …]}`, or a list of topics (None: all) with all partitions."""
    if isinstance(given, Mapping):
        return partitions_of(given)
    topics = await describe_topics(client, given)
    raise_first(topic.error for topic in topics)
    return [
        TopicPartition(topic.name or "", partition.index)
        for topic in topics
        for partition in topic.partitions
    ]


async def delete_records(
    client: ClusterClient,
    records_to_delete: Mapping[TopicPartition, int],
    timeout_ms: int | None = None,
    partition_leader_id: int | None = None,
) -> dict[TopicPartition, dict[str, int]]:
    """Delete the records before offsets (-1: all up to the high watermark).

    Raises the first failure; those of the other partitions are in its notes.

        admin.delete_records({TopicPartition("orders", 0): 5000})
    """
    before = {TopicPartition(*key): offset for key, offset in records_to_delete.items()}
    timeout_ms = timeout_ms or int(client.request_timeout_ms)
    outcomes = await offsets.delete_records(
        client, before, timeout_ms=timeout_ms, broker_id=partition_leader_id
    )
    failures = [outcome for outcome in outcomes.values() if isinstance(outcome, RequestError)]
    if failures:
        for other in failures[1:]:
            failures[0].add_note(str(other))
        raise failures[0]
    return {
        partition: {
            "partition_index": partition.partition,
            "low_watermark": start,
            "error_code": 0,
        }
        for partition, start in settled_or_raise(outcomes).items()
    }


async def elect_leaders(
    client: ClusterClient,
    election_type: ElectionType | int | str,
    topic_partitions: Partitions = None,
    timeout_ms: int | None = None,
    raise_errors: bool = True,
) -> Answer:
    """Elect leaders now: PREFERRED (0) or UNCLEAN (1); ELECTION_NOT_NEEDED is no failure.

    admin.elect_leaders("preferred", {"orders": [0, 1]})
    """
    outcomes = await calls.elect_leaders(
        client,
        await chosen_partitions(client, topic_partitions),
        chosen(ElectionType, election_type),
        timeout_ms=timeout_ms or int(client.request_timeout_ms),
    )
    if raise_errors:
        raise_first(
            error
            for error in outcomes.values()
            if error is not None and error.code is not ErrorCode.ELECTION_NOT_NEEDED
        )
    by_topic: dict[str, list[Answer]] = {}
    for partition, error in outcomes.items():
        by_topic.setdefault(partition.topic, []).append(
            Answer(
                partition_id=partition.partition,
                error_code=code_of(error),
                error_message=message_of(error),
            )
        )
    return Answer(
        throttle_time_ms=0,
        error_code=0,
        replica_election_results=[
            Answer(topic=topic, partition_result=results) for topic, results in by_topic.items()
        ],
    )


async def alter_partition_reassignments(
    client: ClusterClient,
    reassignments: Mapping[TopicPartition, Sequence[int] | None],
    timeout_ms: int | None = None,
) -> dict[TopicPartition, type[RequestError] | None]:
    """Reassign partitions to other replicas, or (None) cancel that; failures are error classes.

    admin.alter_partition_reassignments({TopicPartition("orders", 0): [2, 3]})
    """
    outcomes = await calls.alter_partition_reassignments(
        client,
        {TopicPartition(*key): replicas for key, replicas in reassignments.items()},
        timeout_ms=timeout_ms or int(client.request_timeout_ms),
    )
    return {
        partition: None if error is None else type(error) for partition, error in outcomes.items()
    }


async def list_partition_reassignments(
    client: ClusterClient,
    topic_partitions: Mapping[str, Iterable[int]] | Iterable[TopicPartition] | None = None,
    timeout_ms: int | None = None,
) -> dict[TopicPartition, dict[str, list[int]]]:
    """Return the reassignments in progress, of some partitions or of all.

    admin.list_partition_reassignments()
    """
    moving = await calls.list_partition_reassignments(
        client,
        None if topic_partitions is None else partitions_of(topic_partitions),
        timeout_ms=timeout_ms or int(client.request_timeout_ms),
    )
    return {
        partition: {
            "replicas": list(each.replicas),
            "adding_replicas": list(each.adding),
            "removing_replicas": list(each.removing),
        }
        for partition, each in moving.items()
    }


async def list_partition_offsets(
    client: ClusterClient,
    topic_partition_specs: Mapping[TopicPartition, OffsetSpec | int],
    isolation_level: int | str = 0,
    timeout_ms: int | None = None,
) -> dict[TopicPartition, OffsetAndTimestamp]:
    """Look up offsets by position (OffsetSpec) or time in ms; raises if a partition fails.

    admin.list_partition_offsets({TopicPartition("orders", 0): OffsetSpec.LATEST})
    """
    found = await offsets.list_offsets(
        client,
        {
            TopicPartition(*key): _timestamp(key, each)
            for key, each in topic_partition_specs.items()
        },
        committed=_is_committed(isolation_level),
        timeout_ms=timeout_ms,
    )
    return {partition: _found(each) for partition, each in found.items()}


def _timestamp(partition: TopicPartition, given: object) -> int:
    if isinstance(given, int):
        return given
    raise InvalidValueError(f"{partition}: {given!r} must be an OffsetSpec or a time in ms")


def _found(found: FoundOffset) -> OffsetAndTimestamp:
    return OffsetAndTimestamp(found.offset, found.timestamp_ms, found.leader_epoch)


def _is_committed(level: int | str) -> bool:
    if isinstance(level, int):
        return level == READ_COMMITTED
    named = str(level).lower()
    if named not in ISOLATION_LEVELS:
        raise InvalidValueError(
            f"isolation_level {level!r}: must be one of {', '.join(ISOLATION_LEVELS)}"
        )
    return named == ISOLATION_LEVELS[READ_COMMITTED]
