"""The cluster: brokers and controller, API versions, the KRaft quorum; unregistering a broker."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.admin.acls import NOT_REQUESTED, ACLOperation, operations_of
from barnabas.admin.controller import at_controller
from barnabas.admin.failures import check, failure_or_none
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.client.metadata import BrokerAddress
from barnabas.client.negotiation import PeerVersions
from barnabas.model.errors import RequestError
from barnabas.model.ids import Uuid
from barnabas.model.request_errors import request_error
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionRequest,
    ReplicaState,
    TopicRequest,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

METADATA_TOPIC = "__cluster_metadata"
FIRST_VERSION_WITH_FENCED = 2
METADATA_VERSIONS_WITH_OPERATIONS = range(8, 11)


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """The brokers of a cluster; `controller_id` is None while there is none.

    Operations are None if they were not requested or the broker is too old to return them.
    """

    cluster_id: str | None
    controller_id: int | None
    brokers: tuple[BrokerAddress, ...]
    authorized_operations: frozenset[ACLOperation] | None = None
    fenced: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """A controller, or a broker that follows them; times are None if unknown."""

    replica_id: int
    directory_id: Uuid
    log_end_offset: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


@dataclass(frozen=True, slots=True)
class QuorumNode:
    """The endpoints of a controller: (listener, host, port) each."""

    node_id: int
    listeners: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True)
class QuorumDescription:
    """The controllers of a KRaft cluster and the progress of each."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    nodes: tuple[QuorumNode, ...]
    error: RequestError | None = None


async def describe_cluster(
    client: ClusterClient,
    *,
    authorized_operations: bool = False,
    fenced: bool = False,
    timeout_ms: float | None = None,
) -> ClusterDescription:
    """Return brokers, controller and cluster id; from Metadata if DescribeCluster is unsupported.

    With `fenced`, fenced brokers are listed too (4.0 and later).
    """

    async def attempt() -> ClusterDescription:
        connection = await client.connection()
        key = DescribeClusterRequest.KEY
        assert key is not None
        if not connection.versions.supports(key):
            return await _from_metadata(client, authorized_operations)
        version = connection.version_of(DescribeClusterRequest)
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=authorized_operations,
            include_fenced_brokers=fenced and version >= FIRST_VERSION_WITH_FENCED,
        )
        response: DescribeClusterResponse = await connection.send(request, version=version)
        if response.error_code:
            raise request_error(response.error_code, response.error_message)
        brokers = (
            BrokerAddress(broker.broker_id, broker.host, broker.port, broker.rack)
            for broker in response.brokers
        )
        return ClusterDescription(
            response.cluster_id,
            response.controller_id if response.controller_id >= 0 else None,
            tuple(sorted(brokers, key=_id)),
            operations_of(response.cluster_authorized_operations),
            frozenset(broker.broker_id for broker in response.brokers if broker.is_fenced),
        )

    return await client.retrying(attempt, timeout_ms=timeout_ms)


async def _from_metadata(client: ClusterClient, authorized_operations: bool) -> ClusterDescription:
    view = await client.refresh()
    bits = NOT_REQUESTED
    connection = await client.connection()
    version = connection.version_of(MetadataRequest, at_most=METADATA_VERSIONS_WITH_OPERATIONS[-1])
    if authorized_operations and version in METADATA_VERSIONS_WITH_OPERATIONS:
        request = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
        response: MetadataResponse = await connection.send(request, version=version)
        bits = response.cluster_authorized_operations
    return ClusterDescription(
        view.cluster_id,
        view.controller_id,
        tuple(sorted(view.brokers.values(), key=_id)),
        operations_of(bits),
    )


async def api_versions(client: ClusterClient, broker_id: int) -> PeerVersions:
    """Return the APIs and versions that a broker supports."""
    return (await client.retrying(lambda: client.connection(broker_id))).versions


async def describe_quorum(
    client: ClusterClient, *, timeout_ms: float | None = None
) -> QuorumDescription:
    """Return the controllers of a KRaft cluster: leader, voters, observers, endpoints."""
    request = DescribeQuorumRequest(
        topics=[
            TopicRequest(
                topic_name=METADATA_TOPIC, partitions=[PartitionRequest(partition_index=0)]
            )
        ]
    )

    async def attempt() -> DescribeQuorumResponse:
        response: DescribeQuorumResponse = await client.send(request)
        check(response.error_code, "the quorum", response.error_message)
        return response

    response = await client.retrying(attempt, timeout_ms=timeout_ms)
    partition = response.topics[0].partitions[0]
    return QuorumDescription(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        tuple(_replica(each) for each in partition.current_voters),
        tuple(_replica(each) for each in partition.observers),
        tuple(
            QuorumNode(
                node.node_id,
                tuple((each.name, each.host, each.port) for each in node.listeners),
            )
            for node in response.nodes
        ),
        failure_or_none(partition.error_code, METADATA_TOPIC, partition.error_message),
    )


def _replica(state: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        state.replica_id,
        state.replica_directory_id,
        state.log_end_offset,
        state.last_fetch_timestamp if state.last_fetch_timestamp >= 0 else None,
        state.last_caught_up_timestamp if state.last_caught_up_timestamp >= 0 else None,
    )


async def unregister_broker(
    client: ClusterClient, broker_id: int, *, timeout_ms: float | None = None
) -> None:
    """Remove a broker's registration from a KRaft cluster; it should be stopped and empty.

    await unregister_broker(client, 7)
    """

    async def ask(connection: Connection) -> None:
        response: UnregisterBrokerResponse = await connection.send(
            UnregisterBrokerRequest(broker_id=broker_id)
        )
        check(response.error_code, f"broker {broker_id}", response.error_message)

    await at_controller(client, ask, timeout_ms=timeout_ms)


def _id(broker: BrokerAddress) -> int:
    return broker.node_id
