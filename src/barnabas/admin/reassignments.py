"""Partition reassignments: start, cancel and list them; elect leaders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from barnabas.admin.controller import ask_controller, at_controller
from barnabas.admin.failures import check, failure_or_none
from barnabas.admin.leaders import by_topic
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import UnsupportedVersionError
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)


class ElectionType(IntEnum):
    """PREFERRED: the first replica if it is in sync; UNCLEAN: any, which may lose records."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class Reassignment:
    """The replicas of a partition being reassigned, and those that are added and removed."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


async def alter_partition_reassignments(
    client: ClusterClient,
    reassignments: Mapping[TopicPartition, Sequence[int] | None],
    *,
    same_factor: bool = False,
    timeout_ms: int = 30_000,
) -> dict[TopicPartition, RequestError | None]:
    """Reassign partitions to other replicas (the first is preferred); None cancels.

    With `same_factor` the controller rejects other numbers of replicas than the current ones.

    await alter_partition_reassignments(client, {TopicPartition("orders", 0): [2, 3]})
    """
    for partition, replicas in reassignments.items():
        if replicas is not None and not replicas:
            raise InvalidValueError(
                f"{partition}: the list of replicas must not be empty; None cancels"
            )

    async def ask(
        connection: Connection, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, RequestError | None]:
        if same_factor and connection.version_of(AlterPartitionReassignmentsRequest) < 1:
            raise UnsupportedVersionError("the controller does not compare numbers of replicas")
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=timeout_ms,
            allow_replication_factor_change=not same_factor,
            topics=[
                ReassignableTopic(
                    name=topic,
                    partitions=[
                        ReassignablePartition(
                            partition_index=index,
                            replicas=_listed(reassignments[TopicPartition(topic, index)]),
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(partitions).items()
            ],
        )
        response: AlterPartitionReassignmentsResponse = await connection.send(request)
        check(response.error_code, "reassignments", response.error_message)
        return {
            (partition := TopicPartition(topic.name, result.partition_index)): failure_or_none(
                result.error_code, partition, result.error_message
            )
            for topic in response.responses
            for result in topic.partitions
        }

    return await ask_controller(client, reassignments, ask, timeout_ms=timeout_ms)


def _listed(replicas: Sequence[int] | None) -> list[int] | None:
    return None if replicas is None else list(replicas)


async def list_partition_reassignments(
    client: ClusterClient,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    timeout_ms: int = 30_000,
) -> dict[TopicPartition, Reassignment]:
    """Return the reassignments in progress, of some partitions or of all."""
    wanted = None if partitions is None else by_topic(partitions)

    async def ask(connection: Connection) -> ListPartitionReassignmentsResponse:
        request = ListPartitionReassignmentsRequest(
            timeout_ms=timeout_ms,
            topics=None
            if wanted is None
            else [
                ListPartitionReassignmentsTopics(name=topic, partition_indexes=indexes)
                for topic, indexes in wanted.items()
            ],
        )
        response: ListPartitionReassignmentsResponse = await connection.send(request)
        check(response.error_code, "reassignments", response.error_message)
        return response

    response = await at_controller(client, ask, timeout_ms=timeout_ms)
    return {
        TopicPartition(topic.name, moving.partition_index): Reassignment(
            tuple(moving.replicas), tuple(moving.adding_replicas), tuple(moving.removing_replicas)
        )
        for topic in response.topics
        for moving in topic.partitions
    }


async def elect_leaders(
    client: ClusterClient,
    partitions: Iterable[TopicPartition] | None = None,
    election: ElectionType = ElectionType.PREFERRED,
    *,
    timeout_ms: int = 30_000,
) -> dict[TopicPartition, RequestError | None]:
    """Elect leaders now, of some partitions or of all; ELECTION_NOT_NEEDED is among the failures.

    await elect_leaders(client, [TopicPartition("orders", 0)])
    """
    wanted = None if partitions is None else by_topic(partitions)

    async def ask(connection: Connection) -> ElectLeadersResponse:
        version = connection.version_of(ElectLeadersRequest, at_least=int(bool(election)))
        request = ElectLeadersRequest(
            election_type=election,
            topic_partitions=None
            if wanted is None
            else [
                TopicPartitions(topic=topic, partitions=indexes)
                for topic, indexes in wanted.items()
            ],
            timeout_ms=timeout_ms,
        )
        response: ElectLeadersResponse = await connection.send(request, version=version)
        check(response.error_code, "election")
        return response

    response = await at_controller(client, ask, timeout_ms=timeout_ms)
    return {
        (partition := TopicPartition(topic.topic, result.partition_id)): failure_or_none(
            result.error_code, partition, result.error_message
        )
        for topic in response.replica_election_results
        for result in topic.partition_result
    }
