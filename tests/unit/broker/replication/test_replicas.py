"""Partitions that a broker takes over: what is set for one topic is no other topic's trouble."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.unit.broker.neighbours import alone_with_tree, broker, create, until

from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.topic_store import NewTopic
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)

UNREADABLE, SENSELESS = b"no configs", nodes.encode_config({"retention.ms": "many"})


def roles(*topics: str) -> LeaderAndIsrRequest:
    state = LeaderAndIsrPartitionState(
        partition_index=0, leader=0, isr=[0], replicas=[0], is_new=True
    )
    return LeaderAndIsrRequest(
        controller_epoch=1,
        broker_epoch=-1,
        topic_states=[
            LeaderAndIsrTopicState(
                topic_name=topic, topic_id=topic[:1].encode() * 16, partition_states=[state]
            )
            for topic in topics
        ],
    )


@pytest.mark.parametrize("tampered", [UNREADABLE, SENSELESS])
def test_configs_that_make_no_sense_cost_their_topic_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, tampered: bytes
) -> None:
    """It is not served by other options: those might delete what it was meant to keep."""

    async def story() -> None:
        alone, tree = await alone_with_tree(tmp_path)
        await tree.create(nodes.config_path("topics", "bad"), tampered)
        errors = await alone.parts.replicas.take_roles(roles("bad", "good"))
        assert errors == {
            TopicPartition("bad", 0): ErrorCode.KAFKA_STORAGE_ERROR,
            TopicPartition("good", 0): ErrorCode.NONE,
        }
        assert list(alone.partitions) == [("good", 0)]
        assert "bad" in caplog.text
        await alone.stop()

    asyncio.run(story())


@pytest.mark.parametrize("tampered", [UNREADABLE, SENSELESS])
def test_an_election_passes_over_configs_that_make_no_sense(
    tmp_path: Path, tampered: bytes
) -> None:
    """Whether records may be lost is asked for all partitions without a leader at once."""

    async def story() -> None:
        store = MemoryStore()
        controller, other = (broker(store, tmp_path, number) for number in range(2))
        await controller.start()
        await other.start()
        await until(lambda: len(controller.cluster.brokers) == 2, "both know each other")
        allowed = {"unclean.leader.election.enable": "true"}
        for name in ("bad", "lost"):
            await create(controller, NewTopic(name, 1, 1, {0: [1]}, allowed))
        tree = MemoryCoordination(store)
        await tree.start()
        await tree.set(nodes.config_path("topics", "bad"), tampered)
        assert await controller.controller._allow_unclean(["bad", "lost"]) == ["lost"]
        await other.kill()
        await until(lambda: list(controller.cluster.brokers) == [0], "the other one is gone")
        for name in ("bad", "lost"):
            view = controller.cluster.topic(name)
            assert view is not None
            assert view.partitions[0].leader == -1
        await controller.stop()

    asyncio.run(story())
