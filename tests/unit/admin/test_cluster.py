"""The cluster describes itself: to us by a real broker, and by one too old for DescribeCluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.network.scripted_broker import ScriptedBroker

from barnabas.admin.cluster import api_versions, describe_cluster
from barnabas.admin.log_dirs import describe_log_dirs
from barnabas.admin.producers import describe_producers
from barnabas.admin.topics import NewTopic, create_topics
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.metadata import BrokerAddress
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)


def ask(bootstrap: str, client: Callable[[ClusterClient], Awaitable[Any]]) -> Any:
    async def conversation() -> Any:
        async with ClusterClient(bootstrap) as cluster_client:
            return await client(cluster_client)

    return asyncio.run(conversation())


def test_a_real_broker_describes_its_cluster(barnabas_bootstrap: str) -> None:
    described = ask(barnabas_bootstrap, describe_cluster)
    host, _, port = barnabas_bootstrap.partition(":")
    assert described.brokers == (BrokerAddress(0, host, int(port)),)
    assert described.controller_id == 0
    assert len(described.cluster_id) == 22


def test_without_describe_cluster_metadata_tells_the_same() -> None:
    def metadata(request: MetadataRequest, version: int) -> MetadataResponse:
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=n, host="h", port=n) for n in (2, 1)],
            cluster_id="c",
            controller_id=2,
        )

    async def conversation() -> Any:
        async with (
            ScriptedBroker({MetadataRequest: metadata}) as broker,
            ClusterClient([broker.address]) as cluster_client,
        ):
            return await describe_cluster(cluster_client)

    described = asyncio.run(conversation())
    assert (described.cluster_id, described.controller_id) == ("c", 2)
    assert [broker.node_id for broker in described.brokers] == [1, 2]


def test_versions_log_directories_and_producers(barnabas_bootstrap: str) -> None:
    partition = TopicPartition("described", 0)

    async def client(cluster_client: ClusterClient) -> None:
        [created] = await create_topics(cluster_client, [NewTopic("described", 1, 1)])
        assert created.error is None
        versions = await api_versions(cluster_client, 0)
        assert versions.ranges[18].highest == 4
        [directory] = await describe_log_dirs(cluster_client, 0, [partition])
        [replica] = directory.replicas
        assert (replica.partition, replica.size_bytes) == (partition, 0)
        assert directory.error is None
        assert await describe_producers(cluster_client, [partition]) == {partition: []}

    ask(barnabas_bootstrap, client)
