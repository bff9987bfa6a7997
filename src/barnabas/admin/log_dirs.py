"""Log directories of brokers: their replicas, and moving replicas from one to another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.admin.brokers import ask_brokers
from barnabas.admin.failures import check, failure_or_none
from barnabas.admin.leaders import by_topic
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.structs import TopicPartitionReplica
from barnabas.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from barnabas.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)


@dataclass(frozen=True, slots=True)
class ReplicaSize:
    """One replica in a log directory."""

    partition: TopicPartition
    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """One log directory of a broker; totals are None if the broker is too old to return them."""

    path: str
    error: RequestError | None
    replicas: tuple[ReplicaSize, ...]
    total_bytes: int | None
    usable_bytes: int | None


async def describe_log_dirs(
    client: ClusterClient, broker_id: int, partitions: Iterable[TopicPartition] | None = None
) -> list[LogDirectory]:
    """Return the log directories of a broker with all its replicas, or those of some partitions."""
    outcome = (await describe_log_dirs_of(client, [broker_id], partitions))[broker_id]
    if isinstance(outcome, RequestError):
        raise outcome
    return outcome


async def describe_log_dirs_of(
    client: ClusterClient,
    broker_ids: Iterable[int] | None = None,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    timeout_ms: float | None = None,
) -> dict[int, list[LogDirectory] | RequestError]:
    """Return the log directories of some brokers, or of all."""
    topics = None
    if partitions is not None:
        topics = [
            DescribableLogDirTopic(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]

    async def ask(broker_id: int, connection: Connection) -> list[LogDirectory]:
        response: DescribeLogDirsResponse = await connection.send(
            DescribeLogDirsRequest(topics=topics)
        )
        check(response.error_code, f"log directories of broker {broker_id}")
        return [
            LogDirectory(
                result.log_dir,
                failure_or_none(result.error_code, result.log_dir),
                tuple(
                    ReplicaSize(
                        TopicPartition(topic.name, replica.partition_index),
                        replica.partition_size,
                        replica.offset_lag,
                        replica.is_future_key,
                    )
                    for topic in result.topics
                    for replica in topic.partitions
                ),
                result.total_bytes if result.total_bytes >= 0 else None,
                result.usable_bytes if result.usable_bytes >= 0 else None,
            )
            for result in response.results
        ]

    return await ask_brokers(client, broker_ids, ask, timeout_ms=timeout_ms)


async def alter_replica_log_dirs(
    client: ClusterClient,
    moves: Mapping[TopicPartitionReplica, str],
    *,
    timeout_ms: float | None = None,
) -> dict[TopicPartitionReplica, RequestError | None]:
    """Move replicas to other directories of their brokers; paths are absolute.

    await alter_replica_log_dirs(client, {TopicPartitionReplica("orders", 0, 1): "/disk2/kafka"})
    """
    by_broker: dict[int, list[TopicPartitionReplica]] = {}
    for replica in moves:
        by_broker.setdefault(replica.broker_id, []).append(replica)

    async def ask(
        broker_id: int, connection: Connection
    ) -> dict[TopicPartitionReplica, RequestError | None]:
        paths: dict[str, list[TopicPartition]] = {}
        for replica in by_broker[broker_id]:
            partition = TopicPartition(replica.topic, replica.partition)
            paths.setdefault(moves[replica], []).append(partition)
        request = AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(
                    path=path,
                    topics=[
                        AlterReplicaLogDirTopic(name=topic, partitions=indexes)
                        for topic, indexes in by_topic(partitions).items()
                    ],
                )
                for path, partitions in paths.items()
            ]
        )
        response: AlterReplicaLogDirsResponse = await connection.send(request)
        return {
            TopicPartitionReplica(topic.topic_name, result.partition_index, broker_id): (
                failure_or_none(result.error_code, f"{topic.topic_name}-{result.partition_index}")
            )
            for topic in response.results
            for result in topic.partitions
        }

    answers = await ask_brokers(client, by_broker, ask, timeout_ms=timeout_ms)
    outcomes: dict[TopicPartitionReplica, RequestError | None] = {}
    for replica in moves:
        answer = answers[replica.broker_id]
        outcomes[replica] = answer if isinstance(answer, RequestError) else answer[replica]
    return outcomes
