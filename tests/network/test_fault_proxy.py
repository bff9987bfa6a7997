"""The fault proxy: it passes everything on, hides the brokers, and breaks exactly what is asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from tests.network.fault_proxy import FaultProxy

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import ConnectionLostError, NetworkError, RequestTimeoutError
from barnabas.testing.cluster import Cluster
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.metadata import MetadataRequest


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[FaultProxy]:
    with FaultProxy(cluster.bootstrap) as running:
        yield running


def converse(proxy: FaultProxy, client: Callable[[ClusterClient], Awaitable[Any]]) -> Any:
    async def conversation() -> Any:
        async with ClusterClient(proxy.bootstrap, request_timeout_ms=60_000) as cluster_client:
            return await client(cluster_client)

    return asyncio.run(conversation())


async def describe(cluster_client: ClusterClient) -> Any:
    return await cluster_client.send(DescribeClusterRequest())


def test_addresses_in_answers_are_those_of_the_proxy(proxy: FaultProxy) -> None:
    async def client(cluster_client: ClusterClient) -> list[str]:
        view = await cluster_client.refresh()
        described = await describe(cluster_client)
        found = await cluster_client.send(FindCoordinatorRequest(coordinator_keys=["g"]))
        places = [*view.brokers.values(), *described.brokers, *found.coordinators]
        return [f"{place.host}:{place.port}" for place in places if place.port > 0]

    assert set(converse(proxy, client)) == {proxy.bootstrap}
    assert proxy.requests["Metadata"] == proxy.requests["DescribeCluster"] == 1
    assert proxy.connections == 1


@pytest.mark.parametrize(("at", "after_bytes"), [("request", 0), ("request", 7), ("answer", 0)])
def test_the_nth_request_is_cut_where_it_was_asked_for(
    proxy: FaultProxy, at: Any, after_bytes: int
) -> None:
    async def client(cluster_client: ClusterClient) -> str:
        fault = proxy.cut(DescribeClusterRequest, nth=2, at=at, after_bytes=after_bytes)
        await describe(cluster_client)
        await cluster_client.refresh()
        assert not fault.happened.is_set()
        with pytest.raises(ConnectionLostError) as failure:
            await describe(cluster_client)
        assert fault.happened.is_set()
        await describe(cluster_client)
        return str(failure.value)

    assert "before DescribeCluster was answered" in converse(proxy, client)
    assert proxy.connections == 2


def test_a_part_of_an_answer_arrives_before_the_cut(proxy: FaultProxy) -> None:
    async def client(cluster_client: ClusterClient) -> int:
        connection = await cluster_client.connection()
        before = connection.stats.bytes_in
        proxy.cut(MetadataRequest, at="answer", after_bytes=10)
        with pytest.raises(ConnectionLostError):
            await cluster_client.refresh()
        return connection.stats.bytes_in - before

    assert converse(proxy, client) == 10


@pytest.mark.parametrize("at", ["request", "answer"])
def test_a_stalled_connection_is_silent_until_it_heals(proxy: FaultProxy, at: Any) -> None:
    async def client(cluster_client: ClusterClient) -> None:
        fault = proxy.stall(DescribeClusterRequest, at=at, after_bytes=3)
        waiting = asyncio.ensure_future(describe(cluster_client))
        assert await asyncio.to_thread(fault.happened.wait, 60)
        done, _ = await asyncio.wait([waiting], timeout=0.05)
        assert not done
        await asyncio.to_thread(proxy.heal)
        assert (await waiting).brokers

    converse(proxy, client)


def test_a_stall_becomes_a_timeout_of_the_client(proxy: FaultProxy) -> None:
    async def client(cluster_client: ClusterClient) -> None:
        await cluster_client.connection()
        proxy.stall(DescribeClusterRequest, both_ways=True)
        with pytest.raises(RequestTimeoutError, match="DescribeCluster within 50 ms"):
            await cluster_client.send(DescribeClusterRequest(), timeout_ms=50)

    converse(proxy, client)


def test_a_fault_of_an_answer_that_never_came_takes_a_later_one(proxy: FaultProxy) -> None:
    async def client(cluster_client: ClusterClient) -> None:
        await cluster_client.connection()
        cut = proxy.cut(DescribeClusterRequest, at="answer")
        proxy.drop(DescribeClusterRequest, at="request")
        with pytest.raises(RequestTimeoutError):
            await cluster_client.send(DescribeClusterRequest(), timeout_ms=50)
        await asyncio.to_thread(proxy.cut_all)
        assert not cut.happened.is_set()
        with pytest.raises(ConnectionLostError):
            await describe(cluster_client)
        assert cut.happened.is_set()
        await describe(cluster_client)

    converse(proxy, client)


def test_answers_are_delayed(proxy: FaultProxy) -> None:
    async def client(cluster_client: ClusterClient) -> float:
        await cluster_client.connection()
        proxy.delay(DescribeClusterRequest, delay_ms=60)
        started = time.monotonic()
        await describe(cluster_client)
        return time.monotonic() - started

    assert converse(proxy, client) > 0.058  # a loop may count whole milliseconds


def test_a_dropped_answer_breaks_the_order(proxy: FaultProxy) -> None:
    async def client(cluster_client: ClusterClient) -> tuple[Any, Any]:
        await cluster_client.connection()
        proxy.drop(DescribeClusterRequest)
        return await asyncio.gather(
            describe(cluster_client), cluster_client.refresh(), return_exceptions=True
        )

    assert "before request" in str(converse(proxy, client)[0])


def test_refusing_and_healing(proxy: FaultProxy) -> None:
    async def client(cluster_client: ClusterClient) -> None:
        connection = await cluster_client.connection()
        await asyncio.to_thread(proxy.refuse)
        assert proxy.open_connections == 0
        with pytest.raises(ConnectionLostError):
            await connection.send(DescribeClusterRequest())
        with pytest.raises(NetworkError):
            await describe(cluster_client)
        await asyncio.to_thread(proxy.heal)
        await describe(cluster_client)

    converse(proxy, client)


def test_a_frozen_proxy_passes_nothing_until_it_heals(proxy: FaultProxy) -> None:
    async def client(cluster_client: ClusterClient) -> None:
        await describe(cluster_client)
        await asyncio.to_thread(proxy.freeze)
        waiting = asyncio.ensure_future(describe(cluster_client))
        done, _ = await asyncio.wait([waiting], timeout=0.05)
        assert not done
        await asyncio.to_thread(proxy.heal)
        await waiting
        connection = await cluster_client.connection()
        await asyncio.to_thread(proxy.cut_all)
        with pytest.raises(ConnectionLostError):
            await connection.send(DescribeClusterRequest())
        assert (await describe(cluster_client)).brokers

    converse(proxy, client)
    assert proxy.connections == 2
