"""What machines use of the cluster_client: connections now or later, watching, refreshes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from tests.network.scripted_broker import ScriptedBroker

from barnabas.client.addresses import Address
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import ConnectError, NoBrokersAvailable
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import RebootstrapRequiredError
from barnabas.simulation.world import Host, World
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

T0 = TopicPartition("t", 0)


class Story:
    """What simulated brokers 1 to 3 (hosts b1 to b3) tell of the cluster, and what they heard."""

    def __init__(self) -> None:
        self.members = [1, 2, 3]
        self.leader = 1
        self.epoch = 1
        self.error_code = 0
        self.is_created = True
        self.asked: list[tuple[float, list[str] | None, bool]] = []

    def metadata(self, request: MetadataRequest, version: int) -> MetadataResponse:
        names = None if request.topics is None else [topic.name for topic in request.topics]
        now = asyncio.get_running_loop().time()
        self.asked.append((round(now, 3), names, request.allow_auto_topic_creation))
        return MetadataResponse(
            error_code=self.error_code if version >= 13 else 0,
            brokers=[
                MetadataResponseBroker(node_id=n, host=f"b{n}", port=9092) for n in self.members
            ],
            topics=[
                MetadataResponseTopic(
                    name="t",
                    error_code=0 if self.is_created else 3,
                    partitions=[
                        MetadataResponsePartition(
                            partition_index=0, leader_id=self.leader, leader_epoch=self.epoch
                        )
                    ][: self.is_created],
                )
            ],
        )

    def serve(self, n: int) -> Callable[[Host], Awaitable[None]]:
        async def run(host: Host) -> None:
            script: Any = {
                MetadataRequest: self.metadata,
                DescribeClusterRequest: lambda r, v: DescribeClusterResponse(controller_id=n),
            }
            async with ScriptedBroker(script, address=Address(f"b{n}", 9092)):
                await asyncio.Event().wait()

        return run


@contextmanager
def running(story: Story) -> Iterator[World]:
    with World(seed=7) as world:
        for n in (1, 2, 3):
            world.start(f"b{n}", story.serve(n))
        yield world


def client(**options: Any) -> ClusterClient:
    return ClusterClient([Address("b1", 9092)], random=Random(1), **options)


class Watch:
    """Waits for what a watcher is told of."""

    def __init__(self, cluster_client: ClusterClient) -> None:
        self.calls = 0
        self._news = asyncio.Event()
        self.end = cluster_client.watch(self._told)

    def _told(self) -> None:
        self.calls += 1
        self._news.set()

    async def until(self, condition: Callable[[], Any]) -> Any:
        while not (outcome := condition()):
            self._news.clear()
            await self._news.wait()
        return outcome


def test_ready_gives_a_connection_once_it_is_open() -> None:
    story = Story()

    async def scenario() -> int:
        async with client() as cluster_client:
            await cluster_client.refresh()
            watch = Watch(cluster_client)
            assert cluster_client.ready(2) is None
            connection = await watch.until(lambda: cluster_client.ready(2))
            answer = await connection.send(DescribeClusterRequest())
            controller: int = answer.controller_id
            return controller

    with running(story) as world:
        assert world.run(scenario(), until=60) == 2


def test_ready_asks_for_metadata_about_a_broker_that_is_not_known() -> None:
    story = Story()

    async def scenario() -> None:
        async with client() as cluster_client:
            cluster_client.start()
            watch = Watch(cluster_client)
            assert cluster_client.ready(3) is None
            await watch.until(lambda: cluster_client.ready(3))

    with running(story) as world:
        world.run(scenario(), until=60)
    assert story.asked


def test_attempts_to_reach_a_broker_that_is_gone_are_spaced_and_their_failure_is_told() -> None:
    story = Story()

    async def scenario() -> tuple[list[float], ConnectError]:
        loop = asyncio.get_running_loop()
        async with client(reconnect_backoff_ms=(50, 400)) as cluster_client:
            await cluster_client.refresh()
            world.kill("b2")
            failed: list[float] = []
            watch = Watch(cluster_client)
            stats = cluster_client._pool.stats
            while len(failed) < 6:
                assert cluster_client.ready(2) is None
                count = len(failed)
                await watch.until(lambda: stats[Address("b2", 9092)].failed > count)  # noqa: B023
                failed.append(loop.time())
            failure = cluster_client.failure(2)
            assert isinstance(failure, ConnectError)
            world.restart("b2")
            await watch.until(lambda: cluster_client.ready(2))
            assert cluster_client.failure(2) is None
            return failed, failure

    with running(story) as world:
        failed, failure = world.run(scenario(), until=60)
    gaps = [later - sooner for sooner, later in pairwise(failed)]
    for gap, expected in zip(gaps, [0.05, 0.1, 0.2, 0.4, 0.4], strict=True):
        assert expected * 0.8 <= gap <= expected * 1.2 + 0.01
    assert "b2:9092" in str(failure)


def test_a_lost_connection_is_told_to_those_who_watch_until_they_stop() -> None:
    story = Story()

    async def scenario() -> None:
        async with client() as cluster_client:
            await cluster_client.refresh()
            watch, other = Watch(cluster_client), Watch(cluster_client)
            connection = await cluster_client.connection(2)
            await watch.until(lambda: watch.calls)
            other.end()
            calls = other.calls
            world.kill("b2")
            await watch.until(lambda: connection.closed)
            assert other.calls == calls

    with running(story) as world:
        world.run(scenario(), until=60)


def test_requested_refreshes_are_one_and_spaced() -> None:
    story = Story()

    async def scenario() -> None:
        async with client(retry_backoff_ms=(100, 1000)) as cluster_client:
            cluster_client.track(lambda: ["t"], auto_create=True)
            cluster_client.start()
            for _ in range(50):
                cluster_client.request_refresh()
                await asyncio.sleep(0.01)

    with running(story) as world:
        world.run(scenario(), until=60)
    times = [time for time, *_ in story.asked]
    assert 2 <= len(times) <= 6
    assert all(later - sooner >= 0.08 for sooner, later in pairwise(times))
    assert {(tuple(names or ()), auto) for _, names, auto in story.asked} == {(("t",), True)}


def test_old_metadata_is_refreshed_by_a_timer() -> None:
    story = Story()

    async def scenario() -> None:
        async with client(metadata_max_age_ms=60_000) as cluster_client:
            cluster_client.track(lambda: None)
            cluster_client.start()
            await asyncio.sleep(200)

    with running(story) as world:
        world.run(scenario(), until=600)
    assert len(story.asked) == 3
    assert {names for _, names, _ in story.asked} == {None}


def test_a_new_leader_reaches_those_who_watch() -> None:
    story = Story()

    async def scenario() -> tuple[int, int, int]:
        async with client() as cluster_client:
            cluster_client.track(lambda: ["t"])
            cluster_client.start()
            watch = Watch(cluster_client)
            cluster_client.request_refresh()
            await watch.until(lambda: cluster_client.cluster.leader(T0) == 1)
            generation = cluster_client.cluster.generation
            story.leader, story.epoch = 3, 2
            cluster_client.request_refresh()
            await watch.until(lambda: cluster_client.cluster.leader(T0) == 3)
            later = cluster_client.cluster.generation
            await cluster_client.refresh(["t"])
            return generation, later, cluster_client.cluster.generation

    with running(story) as world:
        generation, later, unchanged = world.run(scenario(), until=60)
    assert generation < later == unchanged


def test_a_failed_refresh_is_remembered_and_tried_again() -> None:
    story = Story()

    async def scenario() -> None:
        world.kill("b1")
        async with client() as cluster_client:
            cluster_client.start()
            watch = Watch(cluster_client)
            cluster_client.request_refresh()
            failure = await watch.until(lambda: cluster_client.refresh_failure)
            assert isinstance(failure, NoBrokersAvailable)
            assert "b1:9092" in str(failure)
            world.restart("b1")
            await watch.until(lambda: cluster_client.cluster.brokers)
            await asyncio.sleep(1)
            assert cluster_client.refresh_failure is None

    with running(story) as world:
        world.run(scenario(), until=60)


def test_lanes_are_connections_of_their_own() -> None:
    story = Story()

    async def scenario() -> None:
        async with client() as cluster_client:
            await cluster_client.refresh()
            shared = await cluster_client.connection(1)
            own = await cluster_client.connection(1, channel="coordinator")
            assert own is not shared
            assert cluster_client.ready(1) is shared
            assert cluster_client.ready(1, channel="coordinator") is own

    with running(story) as world:
        world.run(scenario(), until=60)


def test_any_broker_is_the_one_with_the_least_to_do() -> None:
    story = Story()

    async def scenario() -> None:
        async with client() as cluster_client:
            await cluster_client.refresh()
            first, second = [await cluster_client.connection(n) for n in (1, 2)]
            for busy, idle in ((first, second), (second, first)):
                waiting = asyncio.ensure_future(busy.send(DescribeClusterRequest()))
                await asyncio.sleep(0)
                assert await cluster_client.connection() is idle
                await waiting

    with running(story) as world:
        world.run(scenario(), until=60)


def test_connections_that_nobody_uses_are_closed() -> None:
    story = Story()

    async def scenario() -> None:
        async with client(idle_ms_max=10_000, metadata_max_age_ms=1e9) as cluster_client:
            cluster_client.start()
            await cluster_client.refresh()
            idle, busy = [await cluster_client.connection(n) for n in (2, 3)]
            for _ in range(4):
                await asyncio.sleep(4)
                await busy.send(DescribeClusterRequest())
            assert idle.closed
            assert not busy.closed
            assert await cluster_client.connection(2) is not idle

    with running(story) as world:
        world.run(scenario(), until=60)


@pytest.mark.parametrize("rebootstrap", [True, False])
def test_bootstrap_addresses_help_when_all_known_brokers_are_gone(rebootstrap: bool) -> None:
    story = Story()
    story.members = [2, 3]

    async def scenario() -> list[int]:
        async with client(rebootstrap=rebootstrap, retry_backoff_ms=(10, 20)) as cluster_client:
            await cluster_client.refresh()
            await cluster_client.connection(2)
            await cluster_client.connection(3)
            for name in ("b1", "b2", "b3"):
                world.kill(name)
            world.restart("b1")
            story.members = [1]
            await cluster_client.retrying(cluster_client.refresh, timeout_ms=5000)
            return sorted(cluster_client.cluster.brokers)

    with running(story) as world:
        if rebootstrap:
            assert world.run(scenario(), until=600) == [1]
        else:
            with pytest.raises(NoBrokersAvailable):
                world.run(scenario(), until=600)


def test_a_broker_can_ask_the_client_to_start_over() -> None:
    story = Story()

    async def scenario() -> None:
        async with client() as cluster_client:
            await cluster_client.refresh()
            story.error_code = 129
            with pytest.raises(RebootstrapRequiredError):
                await cluster_client.refresh()
            assert cluster_client.cluster.brokers == {}

    with running(story) as world:
        world.run(scenario(), until=60)


def test_brokers_that_are_silent_for_long_are_forgotten() -> None:
    story = Story()
    story.members = [2]

    async def scenario() -> None:
        options: dict[str, Any] = {"rebootstrap_trigger_ms": 3000, "metadata_max_age_ms": 500}
        async with client(**options) as cluster_client:
            cluster_client.start()
            await cluster_client.refresh()
            world.kill("b1")
            world.kill("b2")
            await asyncio.sleep(60)
            assert cluster_client.cluster.brokers == {}
            story.members = [1]
            world.restart("b1")
            await asyncio.sleep(10)
            assert list(cluster_client.cluster.brokers) == [1]

    with running(story) as world:
        world.run(scenario(), until=600)


def test_metrics_tell_of_all_brokers_and_of_each() -> None:
    story = Story()

    async def scenario() -> dict[str, dict[str, float]]:
        async with client() as cluster_client:
            cluster_client.start()
            await cluster_client.refresh()
            connection = await cluster_client.connection(2)
            await connection.send(DescribeClusterRequest())
            await asyncio.sleep(1)
            return cluster_client.metrics("producer")

    with running(story) as world:
        metrics = world.run(scenario(), until=60)
    assert set(metrics) == {
        "producer-metrics",
        "producer-node-metrics.node-1",
        "producer-node-metrics.node-2",
    }
    total, second = metrics["producer-metrics"], metrics["producer-node-metrics.node-2"]
    assert total["connection-count"] == 2
    assert total["request-total"] == total["response-total"] == 4
    assert second["request-total"] == 2
    assert 0 < second["outgoing-byte-rate"] <= second["outgoing-byte-total"]
    assert total["request-latency-avg"] <= total["request-latency-max"] * 1.04


def test_a_topic_that_is_missing_is_looked_for_until_it_is_there() -> None:
    story = Story()
    story.is_created = False

    async def scenario() -> None:
        async with client() as cluster_client:
            cluster_client.track(lambda: ["t"])
            cluster_client.start()
            watch = Watch(cluster_client)
            await cluster_client.refresh(["t"])
            cluster_client.look_for(["t"])
            await asyncio.sleep(60)
            story.is_created = True
            await watch.until(lambda: cluster_client.cluster.partitions_for("t"))
            await asyncio.sleep(60)

    with running(story) as world:
        world.run(scenario())
    times = [time for time, _, _ in story.asked]
    pauses = [round(later - earlier, 1) for earlier, later in pairwise(times)]
    assert 60 <= len(times) <= 90  # at most once in a second or so, and no more once it is there
    assert pauses[-1] < 2
    assert times[-1] - times[0] < 62
