"""Followers whose fetch waits at the leader, and who have more to fetch by then."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.broker.neighbours import broker, create, until
from tests.unit.broker.serving import batch_of, produce_request

from barnabas.broker.broker import Broker
from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.controller.topic_store import NewTopic
from barnabas.coordination.memory import MemoryStore
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
    await until(lambda: len(leader.fetch_purgatory) == 1, "the follower's fetch waits")
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
        follower.fetchers.follow([followed])  # the answer that this calls for is of older times

        def has_heard() -> bool:
            follower.fetchers.flushed(followed)  # ends the fetch that waits
            return followed.log.high_watermark == 1

        await until(has_heard, "the follower knows the watermark")
        await follower.stop()
        await leader.stop()

    asyncio.run(story())
