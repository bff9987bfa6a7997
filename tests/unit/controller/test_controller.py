"""The controller on a tree in memory: durable first, then told."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from barnabas.controller import nodes
from barnabas.controller.cluster import BrokerView, ClusterView, TopicView
from barnabas.controller.controller import Controller, NewTopic
from barnabas.coordination.contract import NoNode
from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import ZERO_UUID


class Told:
    """Effects that keep what they were told, and a cluster view up to date."""

    def __init__(self, cluster: ClusterView) -> None:
        self.cluster = cluster
        self.calls: list[tuple[Any, ...]] = []

    async def topic_changed(self, topic: TopicView, configs: Mapping[str, str]) -> None:
        self.calls.append(("changed", topic.name, len(topic.partitions), dict(configs)))
        self.cluster.put_topic(topic)

    async def topic_deleted(self, topic: TopicView) -> None:
        self.calls.append(("deleted", topic.name))
        self.cluster.remove_topic(topic.name)

    def configs_changed(self, entity_type: str, name: str, configs: Mapping[str, str]) -> None:
        self.calls.append(("configs", entity_type, name, dict(configs)))


class Life:
    """One life of a broker that is the controller, over a store that outlives it."""

    def __init__(self, store: MemoryStore, broker_id: int = 0, brokers: int = 3) -> None:
        self.tree = MemoryCoordination(store)
        self.cluster = ClusterView()
        for number in range(brokers):
            self.cluster.brokers[number] = BrokerView(number, {}, None)
        self.told = Told(self.cluster)
        counter = itertools.count(1)
        self.controller = Controller(
            self.tree,
            broker_id,
            self.cluster,
            self.told,
            lambda: 1_700_000_000_000,
            lambda size: next(counter).to_bytes(size, "big") if size > 2 else bytes(size),
        )

    async def start(self) -> bool:
        await self.tree.start()
        for path in nodes.PERSISTENT_PATHS:
            if await self.tree.exists(path) is None:
                await self.tree.create(path, make_parents=True)
        elected = await self.controller.elect()
        await self.controller.load()
        return elected

    async def data(self, path: str) -> bytes:
        return (await self.tree.get(path))[0]


def run(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(story())  # type: ignore[arg-type]


def test_election() -> None:
    """One wins and raises the epoch; the next one does when the first is gone."""

    async def story() -> None:
        store = MemoryStore()
        first, second = Life(store, 0), Life(store, 1)
        assert await first.start()
        assert not await second.start()
        assert (first.controller.epoch, first.cluster.controller_id) == (1, 0)
        assert await second.data(nodes.CONTROLLER_EPOCH) == b"1"
        assert b'"brokerid":0' in await second.data(nodes.CONTROLLER)
        await first.tree.close()
        assert await second.controller.elect()
        assert second.controller.epoch == 2

    run(story)


def test_creation() -> None:
    """A topic's nodes are all there before anyone is told."""

    async def story() -> None:
        life = Life(MemoryStore())
        await life.start()
        (view,) = await life.controller.create_topics(
            [NewTopic("t", 2, 3, configs={"retention.ms": "5"})]
        )
        assert [each.replicas for each in view.partitions] == [(0, 1, 2), (1, 2, 0)]
        assert [each.leader for each in view.partitions] == [0, 1]
        assert life.told.calls == [("changed", "t", 2, {"retention.ms": "5"})]
        stored = nodes.TopicAssignment.decode("t", await life.data(nodes.topic_path("t")))
        assert stored.topic_id == view.topic_id != ZERO_UUID
        state = nodes.PartitionState.decode("s", await life.data(nodes.state_path("t", 1)))
        assert state == nodes.PartitionState(1, 0, (1, 2, 0), 1)
        assert await life.data("/config/topics/t") == b'{"version":1,"config":{"retention.ms":"5"}}'

    run(story)


def test_creation_is_all_or_none() -> None:
    """A clash leaves nothing of the other topics behind."""

    async def story() -> None:
        life = Life(MemoryStore())
        await life.start()
        await life.tree.create(nodes.topic_path("b"))
        with pytest.raises(RequestError) as refusal:
            await life.controller.create_topics([NewTopic("a", 1, 1), NewTopic("b", 1, 1)])
        assert refusal.value.code == ErrorCode.TOPIC_ALREADY_EXISTS
        assert await life.tree.exists(nodes.topic_path("a")) is None
        assert life.told.calls == []

    run(story)


def test_checks() -> None:
    """What a request may ask for, one rule after the other."""

    async def story() -> None:
        life = Life(MemoryStore())
        await life.start()
        await life.controller.create_topics([NewTopic("a.b", 1, 1)])

        def code(topic: NewTopic, *others: str) -> ErrorCode | None:
            try:
                life.controller.check_topic(topic, others)
            except RequestError as refusal:
                return refusal.code
            return None

        assert code(NewTopic("t", 1, 3)) is None
        assert code(NewTopic("a.b", 1, 1)) == ErrorCode.TOPIC_ALREADY_EXISTS
        assert code(NewTopic("a_b", 1, 1)) == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert code(NewTopic("x_y", 1, 1), "x.y") == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert code(NewTopic("t", 1, 4)) == ErrorCode.INVALID_REPLICATION_FACTOR
        assert code(NewTopic("t", 0, 1)) == ErrorCode.INVALID_PARTITIONS
        assert code(NewTopic("t", 1, -1, {0: [9]})) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert code(NewTopic("t", 1, -1, {0: [2, 1]})) is None

    run(story)


def test_extension() -> None:
    """New partitions go on where the old ones ended; the configs are told again."""

    async def story() -> None:
        life = Life(MemoryStore())
        await life.start()
        await life.controller.create_topics([NewTopic("t", 1, 1, configs={"a": "1"})])
        await life.controller.create_partitions("t", 3, {}, dry_run=True)
        assert len(life.told.calls) == 1
        await life.controller.create_partitions("t", 3, {}, dry_run=False)
        assert life.told.calls[-1] == ("changed", "t", 3, {"a": "1"})
        stored = nodes.TopicAssignment.decode("t", await life.data(nodes.topic_path("t")))
        assert sorted(stored.replicas) == [0, 1, 2]
        await life.controller.create_partitions("t", 4, {3: [2]}, dry_run=False)
        topic = life.cluster.topic("t")
        assert topic is not None
        assert topic.partitions[3].replicas == (2,)
        for count, assignment, code in (
            (4, {}, ErrorCode.INVALID_PARTITIONS),
            (6, {4: [1]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            (5, {4: [9]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ):
            with pytest.raises(RequestError) as refusal:
                await life.controller.create_partitions("t", count, assignment, dry_run=False)
            assert refusal.value.code == code
        with pytest.raises(RequestError) as refusal:
            await life.controller.create_partitions("nowhere", 2, {}, dry_run=False)
        assert refusal.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(story)


def test_deletion() -> None:
    """Nothing of a deleted topic is left, and its name can be used again."""

    async def story() -> None:
        life = Life(MemoryStore())
        await life.start()
        for _ in range(2):
            await life.controller.create_topics([NewTopic("t", 3, 1)])
            await life.controller.delete_topic("t")
            for path in (nodes.topic_path("t"), "/config/topics/t", "/admin/delete_topics/t"):
                assert await life.tree.exists(path) is None
        assert [call[0] for call in life.told.calls] == ["changed", "deleted"] * 2

    run(story)


def test_a_deletion_goes_on_after_a_crash() -> None:
    """A topic that was marked is gone after the next start."""

    async def story() -> None:
        store = MemoryStore()
        life = Life(store)
        await life.start()
        await life.controller.create_topics([NewTopic("t", 1, 1), NewTopic("kept", 1, 1)])
        await life.tree.create("/admin/delete_topics/t")
        await life.tree.close()
        again = Life(store)
        await again.start()
        assert again.cluster.topic("t") is None
        assert again.cluster.topic("kept") is not None
        with pytest.raises(NoNode):
            await again.data(nodes.topic_path("t"))

    run(story)


def test_a_new_life_is_a_new_epoch() -> None:
    """Leaders' epochs rise with every start, ids and configs stay."""

    async def story() -> None:
        store = MemoryStore()
        life = Life(store)
        await life.start()
        (view,) = await life.controller.create_topics([NewTopic("t", 1, 1, configs={"a": "1"})])
        await life.tree.close()
        for epoch in (1, 2):
            life = Life(store)
            assert await life.start()
            topic = life.cluster.topic("t")
            assert topic is not None
            assert (topic.topic_id, topic.partitions[0].leader_epoch) == (view.topic_id, epoch)
            assert life.told.calls == [("changed", "t", 1, {"a": "1"})]
            await life.tree.close()

    run(story)


def test_leaders_come_from_the_isr() -> None:
    """A replica that is alive but not in sync does not lead; without one there is no leader."""

    async def story() -> None:
        store = MemoryStore()
        life = Life(store)
        await life.start()
        await life.controller.create_topics([NewTopic("t", 1, -1, {0: [2, 1]})])
        state = nodes.PartitionState(2, 0, (2,), 1)
        await life.tree.set(nodes.state_path("t", 0), state.encode())
        await life.tree.close()
        alone = Life(store, brokers=2)
        await alone.start()
        topic = alone.cluster.topic("t")
        assert topic is not None
        assert (topic.partitions[0].leader, topic.partitions[0].isr) == (-1, (2,))

    run(story)


def test_topics_of_older_versions() -> None:
    """A topic without an id, without states, gets both."""

    async def story() -> None:
        store = MemoryStore()
        life = Life(store)
        await life.tree.start()
        await life.tree.create(
            nodes.topic_path("old"), b'{"version":1,"partitions":{"0":[0]}}', make_parents=True
        )
        assert await life.start()
        topic = life.cluster.topic("old")
        assert topic is not None
        assert topic.topic_id != ZERO_UUID
        stored = nodes.TopicAssignment.decode("t", await life.data(nodes.topic_path("old")))
        assert stored.topic_id == topic.topic_id
        state = nodes.PartitionState.decode("s", await life.data(nodes.state_path("old", 0)))
        assert state.leader == 0

    run(story)


def test_configs() -> None:
    """Each change is stored, announced by a numbered notice, and told."""

    async def story() -> None:
        life = Life(MemoryStore())
        await life.start()
        await life.controller.set_configs("brokers", nodes.DEFAULT_ENTITY, {"a": "1"})
        await life.controller.set_configs("brokers", "0", {"b": "2"})
        await life.controller.set_configs("brokers", "0", {"b": "3"})
        assert await life.controller.load_configs("brokers") == {
            "<default>": {"a": "1"},
            "0": {"b": "3"},
        }
        notices = sorted(await life.tree.children(nodes.CONFIG_CHANGES))
        assert [notice.rpartition("_")[2] for notice in notices] == [
            "0000000000",
            "0000000001",
            "0000000002",
        ]
        first = await life.data(f"{nodes.CONFIG_CHANGES}/{notices[0]}")
        assert first == b'{"version":2,"entity_path":"brokers/<default>"}'
        assert life.told.calls[-1] == ("configs", "brokers", "0", {"b": "3"})

    run(story)


def test_producer_ids_come_in_blocks() -> None:
    """No two brokers get the same block, also after a restart."""

    async def story() -> None:
        store = MemoryStore()
        one, two = Life(store, 0), Life(store, 1)
        await one.start()
        await two.start()
        blocks = await asyncio.gather(
            one.controller.allocate_producer_ids(), two.controller.allocate_producer_ids()
        )
        assert sorted(block.start for block in blocks) == [0, 1000]
        assert all(len(block) == 1000 for block in blocks)
        await one.tree.close()
        again = Life(store, 0)
        await again.start()
        assert (await again.controller.allocate_producer_ids()).start == 2000

    run(story)
