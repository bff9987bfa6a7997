"""Describe the cluster: brokers and controller, API versions, log directories, active producers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.admin.leaders import ask_leaders, by_topic, failure_of, settled_or_raise
from barnabas.client.cluster import BrokerAddress
from barnabas.client.negotiation import PeerVersions
from barnabas.client.switchboard import Switchboard
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from barnabas.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """Who is there; `controller_id` is None while there is none."""

    cluster_id: str | None
    controller_id: int | None
    brokers: tuple[BrokerAddress, ...]


@dataclass(frozen=True, slots=True)
class ReplicaSize:
    """One replica in a log directory."""

    partition: TopicPartition
    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """One log directory of a broker; totals are None where the broker is too old to tell."""

    path: str
    error: RequestError | None
    replicas: tuple[ReplicaSize, ...]
    total_bytes: int | None
    usable_bytes: int | None


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """A producer that a partition remembers."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start_offset: int | None


async def describe_cluster(board: Switchboard) -> ClusterDescription:
    """Return brokers, controller and cluster id; from Metadata where DescribeCluster is unknown."""
    connection = await board.connection()
    key = DescribeClusterRequest.KEY
    assert key is not None
    if not connection.versions.supports(key):
        view = await board.refresh()
        return ClusterDescription(
            view.cluster_id, view.controller_id, tuple(sorted(view.brokers.values(), key=_id))
        )
    response: DescribeClusterResponse = await connection.send(DescribeClusterRequest())
    if response.error_code:
        raise RequestError(ErrorCode.of(response.error_code), response.error_message)
    brokers = (
        BrokerAddress(broker.broker_id, broker.host, broker.port, broker.rack)
        for broker in response.brokers
    )
    return ClusterDescription(
        response.cluster_id,
        response.controller_id if response.controller_id >= 0 else None,
        tuple(sorted(brokers, key=_id)),
    )


async def api_versions(board: Switchboard, broker_id: int) -> PeerVersions:
    """Return the APIs and versions that a broker serves."""
    return (await board.connection(broker_id)).versions


async def describe_log_dirs(
    board: Switchboard, broker_id: int, partitions: Iterable[TopicPartition] | None = None
) -> list[LogDirectory]:
    """Return the log directories of a broker with all its replicas, or those of some partitions."""
    topics = None
    if partitions is not None:
        topics = [
            DescribableLogDirTopic(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    response: DescribeLogDirsResponse = await board.send(
        DescribeLogDirsRequest(topics=topics), broker_id
    )
    if response.error_code:
        raise RequestError(ErrorCode.of(response.error_code))
    return [
        LogDirectory(
            result.log_dir,
            RequestError(ErrorCode.of(result.error_code)) if result.error_code else None,
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


async def describe_producers(
    board: Switchboard, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, list[ActiveProducer]]:
    """Return the producers that the leader of each partition remembers."""

    async def ask(
        leader: int, group: list[TopicPartition]
    ) -> dict[TopicPartition, list[ActiveProducer] | RequestError]:
        request = DescribeProducersRequest(
            topics=[
                TopicRequest(name=topic, partition_indexes=indexes)
                for topic, indexes in by_topic(group).items()
            ]
        )
        response: DescribeProducersResponse = await board.send(request, leader)
        outcomes: dict[TopicPartition, list[ActiveProducer] | RequestError] = {}
        for topic in response.topics:
            for result in topic.partitions:
                partition = TopicPartition(topic.name, result.partition_index)
                if result.error_code:
                    outcomes[partition] = failure_of(
                        partition, result.error_code, result.error_message
                    )
                    continue
                outcomes[partition] = [
                    ActiveProducer(
                        state.producer_id,
                        state.producer_epoch,
                        state.last_sequence,
                        state.last_timestamp,
                        state.coordinator_epoch,
                        state.current_txn_start_offset
                        if state.current_txn_start_offset >= 0
                        else None,
                    )
                    for state in result.active_producers
                ]
        return outcomes

    return settled_or_raise(await ask_leaders(board, partitions, ask))


def _id(broker: BrokerAddress) -> int:
    return broker.node_id
