"""Brokers that join a cluster, or cannot: with a controller, and with one that does not speak."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.unit.broker.neighbours import broker

from barnabas.broker.cluster.controller_commands import ControllerCommands
from barnabas.coordination.contract import ServiceUnavailable
from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.metadata import tree_schema as nodes
from barnabas.model.errors import ConfigError
from barnabas.wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from barnabas.wire.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

HASTY = {"zookeeper.session.timeout.ms": "300"}  # so long it waits for others, three times over


def test_everyone_knows_everyone(tmp_path: Path) -> None:
    async def story() -> None:
        store = MemoryStore()
        brokers = [broker(store, tmp_path, number) for number in range(3)]
        for each in brokers:
            await each.start()
        for each in brokers:
            assert await each.control.learned.until(
                lambda e=each: len(e.cluster.brokers) == 3,  # type: ignore[misc]
                60_000,
            )
            assert each.cluster.controller_id == 0
            assert (each.controller.term is not None) == (each is brokers[0])
        await brokers[0].stop()
        others = brokers[1:]
        for each in others:
            assert await each.control.learned.until(
                lambda e=each: set(e.cluster.brokers) == {1, 2},  # type: ignore[misc]
                60_000,
            )
        assert sum(each.controller.term is not None for each in others) == 1
        for each in others:
            await each.stop()

    asyncio.run(story())


def test_a_controller_that_does_not_speak_is_named(tmp_path: Path) -> None:
    async def story() -> None:
        store = MemoryStore()
        other = MemoryCoordination(store)
        await other.start()
        claim = nodes.encode_controller(7, 0)
        await other.create(nodes.CONTROLLER, claim, ephemeral=True)
        with pytest.raises(ServiceUnavailable, match=r"controller \(broker 7\).*within 900 ms"):
            await broker(store, tmp_path, 1, **HASTY).start()
        assert await other.exists(nodes.broker_path(1)) is None, "it has left again"

    asyncio.run(story())


def test_a_start_that_fails_leaves_nothing_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It follows a partition already when its controller falls silent."""

    async def story() -> None:
        silent = asyncio.Event()

        async def until_informed(control: ControllerCommands, patience_ms: int) -> None:
            await silent.wait()
            raise ServiceUnavailable(f"nothing was heard within {patience_ms} ms")

        monkeypatch.setattr(ControllerCommands, "until_informed", until_informed)
        store = MemoryStore()
        other = MemoryCoordination(store)
        await other.start()
        claim = nodes.encode_controller(7, 0)
        await other.create(nodes.CONTROLLER, claim, ephemeral=True)
        late = broker(store, tmp_path, 1)
        start = asyncio.get_running_loop().create_task(late.start())
        while await other.exists(nodes.broker_path(1)) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        state = LeaderAndIsrPartitionState(
            partition_index=0, leader=7, isr=[7, 1], replicas=[7, 1], is_new=True
        )
        roles = LeaderAndIsrTopicState(topic_name="t", topic_id=b"i" * 16, partition_states=[state])
        await late.control.take(
            LeaderAndIsrRequest(
                controller_id=7, controller_epoch=1, topic_states=[roles], broker_epoch=-1
            )
        )
        assert len(asyncio.all_tasks()) == 3, "this one, the start and the fetcher"
        silent.set()
        with pytest.raises(ServiceUnavailable):
            await start
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(story())


def test_an_id_that_is_taken_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        store = MemoryStore()
        first = broker(store, tmp_path, 1)
        await first.start()
        with pytest.raises(ConfigError, match=r"broker\.id=1: another live broker"):
            await broker(store, tmp_path / "other", 1, **HASTY).start()
        assert first.cluster.brokers.keys() == {1}
        await first.stop()

    asyncio.run(story())


def test_a_directory_of_another_cluster_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        first = broker(MemoryStore(), tmp_path, 1)
        await first.start()
        await first.stop()
        store = MemoryStore()
        second = broker(store, tmp_path, 2)
        await second.start()
        with pytest.raises(ConfigError, match="belongs to cluster"):
            await broker(store, tmp_path, 1).start()
        await second.stop()

    asyncio.run(story())


def test_a_leader_knows_its_topic_before_the_metadata_comes(tmp_path: Path) -> None:
    """Its followers, told at the same time, ask by the topic's id at once."""

    async def story() -> None:
        store = MemoryStore()
        alone = broker(store, tmp_path, 0)
        await alone.start()
        topic_id = b"i" * 16
        state = LeaderAndIsrPartitionState(
            partition_index=0, leader=0, isr=[0, 1], replicas=[0, 1], is_new=True
        )
        roles = LeaderAndIsrTopicState(topic_name="t", topic_id=topic_id, partition_states=[state])
        request = LeaderAndIsrRequest(controller_epoch=1, topic_states=[roles], broker_epoch=-1)
        await alone.control.take(request)
        assert alone.topic_name(topic_id) == "t"
        told = UpdateMetadataTopicState(
            topic_name="t",
            topic_id=topic_id,
            partition_states=[UpdateMetadataPartitionState(partition_index=0, leader=-2)],
        )
        gone = UpdateMetadataRequest(controller_epoch=1, topic_states=[told], broker_epoch=-1)
        await alone.control.take(gone)
        assert alone.topic_name(topic_id) is None, "it is being deleted"
        await alone.stop()

    asyncio.run(story())
