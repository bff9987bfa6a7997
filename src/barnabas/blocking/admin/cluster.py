"""The cluster, as `KafkaAdminClient` describes it: brokers, log directories, features, quorum."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.admin import cluster as calls
from barnabas.admin import features, log_dirs
from barnabas.admin.answers import class_of, code_of, names_of
from barnabas.admin.cluster import METADATA_TOPIC, QuorumReplica
from barnabas.admin.features import FeatureUpdate, UpdateFeatureType
from barnabas.admin.log_dirs import LogDirectory
from barnabas.admin.numbered import chosen
from barnabas.admin.settling import settled_or_raise
from barnabas.blocking.admin.partitions import Partitions, chosen_partitions
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.negotiation import PeerVersions
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.structs import TopicPartitionReplica

OK = "OK"

Update = int | tuple[UpdateFeatureType | str | int, int]


async def describe_cluster(client: ClusterClient) -> dict[str, Any]:
    """Return cluster id, controller, brokers and the operations allowed to the caller.

    admin.describe_cluster()["brokers"][0]["host"]
    """
    described = await calls.describe_cluster(client, authorized_operations=True, fenced=True)
    return {
        "cluster_id": described.cluster_id,
        "controller_id": -1 if described.controller_id is None else described.controller_id,
        "brokers": [
            {
                "broker_id": broker.node_id,
                "host": broker.host,
                "port": broker.port,
                "rack": broker.rack,
                "is_fenced": broker.node_id in described.fenced,
            }
            for broker in described.brokers
        ],
        "authorized_operations": names_of(described.authorized_operations),
    }


async def describe_log_dirs(
    client: ClusterClient, topic_partitions: Partitions = None, brokers: Iterable[int] | None = None
) -> list[dict[str, Any]]:
    """Return the log directories of brokers, with the replicas of some topics or of all.

    admin.describe_log_dirs(["orders"], brokers=[1])
    """
    partitions = None
    if topic_partitions is not None:
        partitions = await chosen_partitions(client, topic_partitions)
    described = await log_dirs.describe_log_dirs_of(client, brokers, partitions)
    return [
        {"broker": broker_id, "log_dirs": [_directory(each) for each in directories]}
        for broker_id, directories in settled_or_raise(described).items()
    ]


def _directory(directory: LogDirectory) -> dict[str, Any]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for replica in directory.replicas:
        topics.setdefault(replica.partition.topic, []).append(
            {
                "partition_index": replica.partition.partition,
                "partition_size": replica.size_bytes,
                "offset_lag": replica.offset_lag,
                "is_future_key": replica.is_future,
            }
        )
    return {
        "error_code": code_of(directory.error),
        "log_dir": directory.path,
        "topics": [{"name": name, "partitions": each} for name, each in topics.items()],
        "total_bytes": -1 if directory.total_bytes is None else directory.total_bytes,
        "usable_bytes": -1 if directory.usable_bytes is None else directory.usable_bytes,
    }


async def alter_replica_log_dirs(
    client: ClusterClient,
    replica_assignments: Mapping[TopicPartitionReplica | tuple[str, int, int], str],
) -> dict[TopicPartitionReplica, type[RequestError]]:
    """Move replicas to other directories of their brokers; return the class of each error.

    admin.alter_replica_log_dirs({TopicPartitionReplica("orders", 0, 1): "/disk2/kafka"})
    """
    moves = {TopicPartitionReplica(*key): path for key, path in replica_assignments.items()}
    outcomes = await log_dirs.alter_replica_log_dirs(client, moves)
    return {replica: class_of(error) for replica, error in outcomes.items()}


async def describe_metadata_quorum(client: ClusterClient) -> dict[str, Any]:
    """Return the controllers of a KRaft cluster, with the progress of each.

    admin.describe_metadata_quorum()["topics"][0]["partitions"][0]["leader_id"]
    """
    described = await calls.describe_quorum(client)
    error = described.error
    partition = {
        "partition_index": 0,
        "leader_id": described.leader_id,
        "leader_epoch": described.leader_epoch,
        "high_watermark": described.high_watermark,
        "current_voters": [_replica(each) for each in described.voters],
        "observers": [_replica(each) for each in described.observers],
        "error": None if error is None else str(error),
    }
    return {
        "topics": [{"topic_name": METADATA_TOPIC, "partitions": [partition]}],
        "nodes": [
            {
                "node_id": node.node_id,
                "listeners": [
                    {"name": name, "host": host, "port": port}
                    for name, host, port in node.listeners
                ],
            }
            for node in described.nodes
        ],
    }


def _replica(replica: QuorumReplica) -> dict[str, Any]:
    fetched, caught_up = replica.last_fetch_ms, replica.last_caught_up_ms
    return {
        "replica_id": replica.replica_id,
        "replica_directory_id": str(uuid.UUID(bytes=replica.directory_id)),
        "log_end_offset": replica.log_end_offset,
        "last_fetch_timestamp": -1 if fetched is None else fetched,
        "last_caught_up_timestamp": -1 if caught_up is None else caught_up,
    }


async def describe_features(
    client: ClusterClient, send_request_to_controller: bool = False
) -> dict[str, dict[str, Any]]:
    """Return the supported and finalized levels of each feature.

    admin.describe_features()["metadata.version"]["finalized"]
    """
    described = await features.describe_features(client, at_controller=send_request_to_controller)
    answer: dict[str, dict[str, Any]] = {}
    for name, levels in described.supported.items():
        answer.setdefault(name, {})["supported"] = (levels.lowest, levels.highest)
    for name, levels in described.finalized.items():
        feature = answer.setdefault(name, {})
        feature["finalized"] = (levels.lowest, levels.highest)
        feature["finalized_epoch"] = described.finalized_epoch
    return answer


async def update_features(
    client: ClusterClient,
    feature_updates: Mapping[str, Update],
    validate_only: bool = False,
    timeout_ms: int = 60_000,
) -> dict[str, str]:
    """Finalize levels of features: `{feature: level}` or `{feature: (type, level)}`.

    admin.update_features({"metadata.version": ("safe_downgrade", 19)}, validate_only=True)
    """
    if not isinstance(feature_updates, Mapping):
        raise InvalidValueError(
            f"feature_updates {feature_updates!r}: must be a dict of feature: level"
        )
    updates = {
        name: FeatureUpdate(given[1], chosen(UpdateFeatureType, given[0]))
        if isinstance(given, tuple)
        else FeatureUpdate(given)
        for name, given in feature_updates.items()
    }
    outcomes = await features.update_features(
        client, updates, validate_only=validate_only, timeout_ms=timeout_ms
    )
    return {name: OK if error is None else str(error) for name, error in outcomes.items()}


async def get_broker_version_data(client: ClusterClient, broker_id: int) -> PeerVersions:
    """Return the APIs that one broker supports; see `PeerVersions.ranges`."""
    return await calls.api_versions(client, broker_id)


async def api_versions(client: ClusterClient) -> dict[int, tuple[int, int]]:
    """Return the APIs that a broker supports, by key, with their first and last versions."""
    connection = await client.retrying(client.connection)
    return {key: (first, last) for key, (first, last) in connection.versions.ranges.items()}
