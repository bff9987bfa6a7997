"""Consumers of a group over a tree in memory and a broker in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.serving import Serving, batch_of, create_topic, produce

from barnabas.client.errors import IllegalStateError
from barnabas.config.clients.options import parse_client_options
from barnabas.consumer.streams import (
    ConsumerConnector,
    ConsumerRebalanceFailed,
    StreamOptions,
    nodes,
)
from barnabas.coordination.contract import ServiceUnavailable
from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.model.errors import ConfigError


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("data")) as running:
        yield running


class Group:
    """A tree that names the broker and its topics, and consumers on it."""

    def __init__(self, serving: Serving, topic: str, partitions: int) -> None:
        self.store = MemoryStore()
        self.topic = topic
        self.serving = serving
        self.partitions = partitions
        self.connectors: list[ConsumerConnector] = []
        self.made = 0

    async def open(self) -> None:
        self.tree = MemoryCoordination(self.store)
        await self.tree.start()
        host, port = self.serving.address
        registration = b'{"version":5,"host":"%s","port":%d}' % (host.encode(), port)
        await self.tree.create("/brokers/ids/0", registration, make_parents=True)
        await self.tree.create("/brokers/topics")
        await self.add_topic(self.topic, self.partitions)

    async def add_topic(self, topic: str, partitions: int) -> None:
        listed = ",".join(f'"{number}":[0]' for number in range(partitions))
        path, data = nodes.topic_path(topic), b'{"partitions":{%s}}' % listed.encode()
        if await self.tree.exists(path) is None:
            await self.tree.create(path, data)
        else:
            await self.tree.set(path, data)

    async def consumer(self, **more: object) -> ConsumerConnector:
        given = {
            "group_id": "g",
            "auto_offset_reset": "smallest",
            "rebalance_backoff_ms": 5,
            "refresh_leader_backoff_ms": 5,
            "rebalance_max_retries": 100,
            **more,
        }
        self.made += 1
        connector = ConsumerConnector(
            MemoryCoordination(self.store),
            parse_client_options(StreamOptions, given),
            host="host",
            wall_clock=lambda: 1.7,
            random_bytes=lambda size: self.made.to_bytes(size, "big"),
        )
        self.connectors.append(connector)
        await connector.start()
        return connector

    async def owners(self, topic: str | None = None) -> dict[int, str]:
        topic = topic or self.topic
        path = f"/consumers/g/owners/{topic}"
        if await self.tree.exists(path) is None:
            return {}
        return {
            int(name): (await self.tree.get(f"{path}/{name}"))[0].decode()
            for name in await self.tree.children(path)
        }


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(60):
        while not await condition():  # noqa: ASYNC110  what comes true is in a tree
            await asyncio.sleep(0.002)


def run(
    serving: Serving, topic: str, partitions: int, story: Callable[[Group], Awaitable[None]]
) -> None:
    async def whole() -> None:
        group = Group(serving, topic, partitions)
        await group.open()
        try:
            await story(group)
        finally:
            for connector in group.connectors:
                await connector.shutdown()

    asyncio.run(whole())


async def values(queue: Any, count: int) -> list[bytes]:
    found: list[bytes] = []
    async with asyncio.timeout(60):
        while len(found) < count:
            found += [bytes(record.value) for record in (await queue.take()).unread()]
    return found


def test_ids_registration_and_shares(serving: Serving) -> None:
    """The id has Kafka's form; two members share by range; one that leaves gives all back."""
    create_topic(serving.connect(), "shared", 3)

    async def story(group: Group) -> None:
        one = await group.consumer()
        assert one.consumer_id == "g_host-1700-00000001"
        await one.create_message_streams({"shared": 1})
        assert await group.owners() == dict.fromkeys(range(3), "g_host-1700-00000001-0")
        data, stat = await group.tree.get("/consumers/g/ids/g_host-1700-00000001")
        assert data == (
            b'{"version":1,"subscription":{"shared":1},"pattern":"static","timestamp":"1700"}'
        )
        assert stat.ephemeral_owner != 0
        two = await group.consumer()
        await two.create_message_streams({"shared": 1})
        shares = {0: f"{one.consumer_id}-0", 1: f"{one.consumer_id}-0", 2: f"{two.consumer_id}-0"}

        async def shared() -> bool:
            return await group.owners() == shares

        await until(shared)
        await one.shutdown()

        async def alone() -> bool:
            return await group.owners() == dict.fromkeys(range(3), f"{two.consumer_id}-0")

        await until(alone)

    run(serving, "shared", 3, story)


def test_offsets_are_committed_and_found_again(serving: Serving) -> None:
    """What was given out is committed at the end; the next consumer begins behind it."""
    wire = serving.connect()
    create_topic(wire, "kept")
    produce(wire, "kept", batch_of(["a", "b"]))

    async def story(group: Group) -> None:
        one = await group.consumer()
        [queue] = (await one.create_message_streams({"kept": 1}))["kept"]
        assert await values(queue, 2) == [b"a", b"b"]
        await one.shutdown()
        assert await queue.take() is None
        assert (await group.tree.get("/consumers/g/offsets/kept/0"))[0] == b"2"
        produce(wire, "kept", batch_of(["c"]))
        two = await group.consumer()
        [queue] = (await two.create_message_streams({"kept": 1}))["kept"]
        assert await values(queue, 1) == [b"c"]
        for again in ({"kept": 1}, {"kept": 2}):
            with pytest.raises(IllegalStateError, match="once"):
                await two.create_message_streams(again)
        with pytest.raises(IllegalStateError, match="once"):
            await two.create_message_streams_by_filter(".*")
        await group.consumer()  # who comes has everyone take their part anew
        await group.connectors[-1].create_message_streams({"other": 1})
        produce(wire, "kept", batch_of(["d"]))
        assert await values(queue, 1) == [b"d"], "the stream of the first call is the one"

    run(serving, "kept", 1, story)


def test_a_lost_session_is_followed_by_a_new_registration(serving: Serving) -> None:
    """Expiry takes registration and ownership; the consumer comes back and goes on reading."""
    wire = serving.connect()
    create_topic(wire, "expiring")

    async def story(group: Group) -> None:
        one = await group.consumer(auto_commit_enable=False)
        [queue] = (await one.create_message_streams({"expiring": 1}))["expiring"]
        before = one._tree.session_id
        group.store.expire(before)

        async def back() -> bool:
            path = f"/consumers/g/ids/{one.consumer_id}"
            stat = await group.tree.exists(path)
            return stat is not None and stat.ephemeral_owner != before and await group.owners()

        await until(back)
        produce(wire, "expiring", batch_of(["x"]))
        assert await values(queue, 1) == [b"x"]

    run(serving, "expiring", 1, story)


def test_new_partitions_and_matching_topics_are_taken(serving: Serving) -> None:
    """A pattern follows topics that come; partitions that are added are read."""
    wire = serving.connect()
    for topic in ("match1", "match2"):
        create_topic(wire, topic, 2)
        produce(wire, topic, batch_of([f"{topic}-0"]), partition=0)
        produce(wire, topic, batch_of([f"{topic}-1"]), partition=1)

    async def story(group: Group) -> None:
        one = await group.consumer(num_consumer_fetchers=2)
        [queue] = await one.create_message_streams_by_filter("match.*")
        assert await values(queue, 1) == [b"match1-0"]
        await group.add_topic("match1", 2)
        assert await values(queue, 1) == [b"match1-1"]
        assert [each.broker_id for each in one._fetchers.ids] == [0, 0]
        assigned = dict(one.assignment)
        await group.add_topic("other", 1)
        await group.add_topic("match2", 2)
        assert sorted(await values(queue, 2)) == [b"match2-0", b"match2-1"]
        assert len(one.assignment) == 4
        assert set(assigned) < set(one.assignment)

    run(serving, "match1", 1, story)


def test_an_offset_that_the_log_does_not_have_is_reset(serving: Serving) -> None:
    """auto.offset.reset decides, for a missing offset and for one out of range."""
    wire = serving.connect()
    create_topic(wire, "reset")
    produce(wire, "reset", batch_of(["old"]))

    async def story(group: Group) -> None:
        await group.tree.create("/consumers/g/offsets/reset/0", b"99", make_parents=True)
        one = await group.consumer(auto_commit_enable=False)
        [queue] = (await one.create_message_streams({"reset": 1}))["reset"]
        assert await values(queue, 1) == [b"old"]
        await one.shutdown()
        await group.tree.delete("/consumers/g/offsets/reset/0")
        two = await group.consumer(auto_offset_reset="largest")
        [queue] = (await two.create_message_streams({"reset": 1}))["reset"]

        async def at_the_end() -> bool:
            return [feed.fetched for feed in two._feeds.values()] == [1]

        await until(at_the_end)
        produce(wire, "reset", batch_of(["new"]))
        assert await values(queue, 1) == [b"new"]

    run(serving, "reset", 1, story)


def test_a_broker_that_was_away_is_found_again(tmp_path: Path) -> None:
    """Partitions without a leader wait with the leader finder, and go on where they were."""
    away = Serving(tmp_path).start()
    create_topic(away.connect(), "back", 2)
    produce(away.connect(), "back", batch_of(["before"]), partition=1)

    async def story(group: Group) -> None:
        one = await group.consumer()
        [queue] = (await one.create_message_streams({"back": 1}))["back"]
        assert await values(queue, 1) == [b"before"]
        await asyncio.to_thread(away.stop)

        async def noticed() -> bool:
            return len(one._fetchers._leaderless) == 2

        await until(noticed)
        away.options["listeners"] = f"PLAINTEXT://127.0.0.1:{away.address[1]}"
        await asyncio.to_thread(away.start)
        produce(away.connect(), "back", batch_of(["after"]), partition=1)
        assert await values(queue, 1) == [b"after"]

    try:
        run(away, "back", 2, story)
    finally:
        away.stop()


def test_a_partition_that_is_not_let_go_fails_the_rebalance(serving: Serving) -> None:
    """Ownership is never taken away from another; after the retries the consumer says so."""
    create_topic(serving.connect(), "held", 2)

    async def story(group: Group) -> None:
        path = nodes.owner_path("g", "held", 1)
        await group.tree.create(path, b"someone", ephemeral=True, make_parents=True)
        one = await group.consumer(rebalance_max_retries=3)
        with pytest.raises(ConsumerRebalanceFailed, match=r"3 attempts \(rebalance.max.retries\)"):
            await one.create_message_streams({"held": 1})
        assert await group.owners() == {1: "someone"}

    run(serving, "held", 2, story)


def test_what_cannot_be_is_said(serving: Serving) -> None:
    """A group is needed; so is a broker; and a name is one consumer's."""
    with pytest.raises(ConfigError, match=r"group\.id="):
        parse_client_options(StreamOptions, {})
    with pytest.raises(ConfigError, match="smallest or largest"):
        parse_client_options(StreamOptions, {"group.id": "g", "auto.offset.reset": "earliest"})

    async def story(group: Group) -> None:
        await group.tree.delete("/brokers/ids/0")
        with pytest.raises(ServiceUnavailable, match="no broker"):
            await group.consumer()
        first = await group.consumer(consumer_id="me", bootstrap_servers="127.0.0.1:1")
        await first.create_message_streams({"none": 1})
        second = await group.consumer(consumer_id="me", bootstrap_servers="127.0.0.1:1")
        with pytest.raises(IllegalStateError, match=r"consumer\.id=me"):
            await second.create_message_streams({"none": 1})

    run(serving, "none", 1, story)
