"""Followers whose fetch waits at the leader, and who have more to fetch by then."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.broker.neighbours import broker, create, until
from tests.unit.broker.scraping import read
from tests.unit.broker.serving import batch_of, produce_request

from barnabas.broker.broker import Broker
from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.coordination.memory import MemoryStore
from barnabas.metadata.topic_store import NewTopic
from barnabas.metrics.catalogue import traffic
from barnabas.metrics.catalogue.requests import TOTAL_TIME
from barnabas.model.error_codes import ErrorCode

FOR_EVER = {
    "replica_fetch_wait_max_ms": "3600000",
    "replica_lag_time_max_ms": "3600000",
    "replica_socket_timeout_ms": "7200000",
}
"""A fetch that finds nothing waits for an hour: who has to wait for its end fails the test."""


async def pair(folder: Path) -> tuple[Broker, Broker]:
    """Start a leader and its follower, whose fetch of an idle topic waits."""
    store = MemoryStore()
    leader, follower = (broker(store, folder, number, **FOR_EVER) for number in range(2))
    await leader.start()
    await follower.start()
    await until(lambda: len(leader.cluster.brokers) == 2, "both know each other")
    await lead(leader, "idle")
    await until(lambda: len(leader.partitions.fetch_purgatory) == 1, "the follower's fetch waits")
    return leader, follower


async def lead(leader: Broker, name: str, **configs: str) -> None:
    """Create a topic of which broker 0 has the lead."""
    configs = {"min.insync.replicas": "2", **configs}
    await create(leader, NewTopic(name, 1, 2, {0: [0, 1]}, configs))
    await until(lambda: leader.partitions[name, 0].is_leader, "it is led")


async def produce(leader: Broker, topic: str, value: str) -> ErrorCode:
    endpoint = leader.endpoints[0]
    connection = await Connection.open(Address(endpoint.host, endpoint.port), client_id="test")
    try:
        request = produce_request(topic, batch_of([value]), acks=-1)
        async with asyncio.timeout(60):
            response = await connection.send(request, version=9)
    finally:
        connection.close()
    return ErrorCode.of(response.responses[0].partition_responses[0].error_code)


def test_a_partition_that_is_new_to_a_follower_is_fetched_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        leader, follower = await pair(tmp_path)
        for number in range(3):
            await lead(leader, f"new-{number}")
            assert await produce(leader, f"new-{number}", "x") is ErrorCode.NONE
        await follower.stop()
        await leader.stop()

    asyncio.run(story())


def test_bytes_of_replication_are_counted_at_both_ends(tmp_path: Path) -> None:
    """They are not the leader's bytes out, which are those of consumers."""

    async def story() -> None:
        leader, follower = await pair(tmp_path)
        await lead(leader, "counted")
        assert await produce(leader, "counted", "x") is ErrorCode.NONE
        size = len(batch_of(["x"]))
        sent, received = read(leader), read(follower)
        assert sent.of(traffic.BYTES_IN, topic="counted") == size
        assert sent.of(traffic.REPLICATION_BYTES_OUT) == size
        assert sent.of(traffic.BYTES_OUT) == 0
        assert received.of(traffic.REPLICATION_BYTES_IN) == size
        assert received.series(traffic.BYTES_IN) == {"": 0}
        for metric in (traffic.REASSIGNMENT_BYTES_IN, traffic.REASSIGNMENT_BYTES_OUT):
            assert sent.of(metric) == received.of(metric) == 0
        assert sent.of(TOTAL_TIME, request="FetchFollower") > 0
        assert sent.of(TOTAL_TIME, request="FetchConsumer") == 0
        await follower.stop()
        await leader.stop()

    asyncio.run(story())


def test_a_follower_that_has_flushed_tells_it_at_once(tmp_path: Path) -> None:
    """Until then it fetched only the others, and that fetch waits."""

    async def story() -> None:
        leader, follower = await pair(tmp_path)
        await lead(leader, "kept", **{"flush.messages": "1"})
        for number in range(5):
            assert await produce(leader, "kept", str(number)) is ErrorCode.NONE
        assert follower.partitions["kept", 0].log.recovery_point == 5
        await follower.stop()
        await leader.stop()

    asyncio.run(story())


def test_a_watermark_in_an_answer_that_comes_too_late_is_told_again(tmp_path: Path) -> None:
    """A leader tells its session what has changed, and takes it for known."""

    async def story() -> None:
        leader, follower = await pair(tmp_path)
        assert await produce(leader, "idle", "x") is ErrorCode.NONE
        assert leader.partitions["idle", 0].log.high_watermark == 1
        followed = follower.partitions["idle", 0]
        follower.parts.fetchers.follow(
            [followed]
        )  # the answer that this calls for is of older times

        def has_heard() -> bool:
            follower.parts.fetchers.flushed(followed)  # ends the fetch that waits
            return followed.log.high_watermark == 1

        await until(has_heard, "the follower knows the watermark")
        await follower.stop()
        await leader.stop()

    asyncio.run(story())


def test_a_fetcher_with_nothing_left_to_follow_ends(tmp_path: Path) -> None:
    """Its connection goes, too; the next partition gets a new one."""

    async def story() -> None:
        leader, follower = await pair(tmp_path)
        (fetcher,) = follower.parts.fetchers._fetchers.values()
        await lead(leader, "other")
        await until(lambda: ("other", 0) in follower.partitions, "both are followed")
        assert list(follower.parts.fetchers._fetchers.values()) == [fetcher]
        await leader.topics.delete("idle", 60_000)
        await until(lambda: ("idle", 0) not in follower.partitions, "one is gone")
        assert list(follower.parts.fetchers._fetchers.values()) == [fetcher]
        await leader.topics.delete("other", 60_000)
        await until(lambda: fetcher.task.done(), "the loop has ended")
        assert not follower.parts.fetchers._fetchers
        assert fetcher._connection is not None
        assert fetcher._connection.closed
        await until(
            lambda: not len(leader.partitions.fetch_purgatory), "nobody waits at the leader"
        )
        await lead(leader, "new")
        assert await produce(leader, "new", "x") is ErrorCode.NONE
        await follower.stop()
        await leader.stop()

    asyncio.run(story())


def test_an_idle_fetcher_ends_after_its_last_step(tmp_path: Path) -> None:
    """A log that is cut back must be checkpointed, also when another leads by then."""

    async def story() -> None:
        leader, follower = await pair(tmp_path)
        (fetcher,) = follower.parts.fetchers._fetchers.values()
        may_end = asyncio.Event()
        ended: list[bool] = []

        async def step() -> None:
            await may_end.wait()
            ended.append(True)

        fetcher._spawn(step())
        await leader.topics.delete("idle", 60_000)
        await until(lambda: ("idle", 0) not in follower.partitions, "it is gone")
        follower.cluster_changed()
        assert not fetcher.task.done()
        may_end.set()
        await until(lambda: fetcher.task.done(), "the loop has ended")
        assert ended == [True]
        assert not follower.parts.fetchers._fetchers
        await follower.stop()
        await leader.stop()

    asyncio.run(story())
