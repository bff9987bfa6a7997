"""Committed offsets of the oldest clients, in the coordination tree."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.unit.broker.coordinated import COORDINATED, commit, fetch_offsets, find
from tests.unit.broker.serving import Serving, create_topic

from barnabas.broker.cluster.tree_offsets import TreeOffsets
from barnabas.consumer.streams.nodes import offset_path
from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.metadata.tree_schema import consumer_offset_path
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic


def test_what_is_stored_is_found_again() -> None:
    async def test() -> None:
        tree = MemoryCoordination(MemoryStore())
        await tree.start()
        offsets = TreeOffsets(tree)
        assert await offsets.fetch("g", "t", 0) is None
        await offsets.store("g", "t", 0, 42)
        await offsets.store("g", "t", 1, 1)
        await offsets.store("g", "t", 0, 43)
        assert await offsets.fetch("g", "t", 0) == 43
        assert await offsets.fetch("g", "t", 1) == 1
        data, _ = await tree.get(consumer_offset_path("g", "t", 0))
        assert data == b"43"
        await tree.set(consumer_offset_path("g", "t", 0), b"not a number")
        assert await offsets.fetch("g", "t", 0) is None
        await tree.close()

    asyncio.run(test())


def test_version_0_of_the_requests_speaks_to_the_tree(tmp_path: Path) -> None:
    """It needs no coordinator, survives a restart, and is apart from what newer versions commit."""
    with Serving(tmp_path, COORDINATED) as serving:
        with serving.connect() as wire:
            create_topic(wire, "t")
            assert commit(wire, "g", {("t", 0): 7}, version=0) == [0]
            missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert commit(wire, "g", {("t", 5): 7, ("u", 0): 1}, version=0) == [missing] * 2
            find(wire, "g")
            assert commit(wire, "g", {("t", 0): 9}) == [0]
        serving.stop()
        serving.start()
        with serving.connect() as wire:
            asked = [OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]
            request = OffsetFetchRequest(group_id="g", topics=asked)
            (topic,) = wire.ask(request, 0).topics
            found = [(each.committed_offset, each.error_code) for each in topic.partitions]
            assert found == [(7, 0), (-1, missing)]
            assert fetch_offsets(wire, "g", [("t", 0)]) == [9]


def test_a_groups_name_stands_in_the_tree_as_it_is(tmp_path: Path) -> None:
    """The stream consumer of the ZooKeeper era looks there, too."""
    with Serving(tmp_path, COORDINATED) as serving, serving.connect() as wire:
        create_topic(wire, "t")
        assert commit(wire, "a b%20", {("t", 0): 7}, version=0) == [0]

        async def found() -> list[str]:
            tree = serving.broker.tree
            data, _ = await tree.get(offset_path("a b%20", "t", 0))
            assert data == b"7"
            return await tree.children("/consumers")

        assert asyncio.run_coroutine_threadsafe(found(), serving.broker.loop).result(60) == [
            "a b%20"
        ]


@pytest.mark.parametrize("group", ["a/b", "..", ".", "a\x00b", "a\x1fb", "\U0001f600"])
def test_a_name_that_no_node_can_have_is_refused(tmp_path: Path, group: str) -> None:
    with Serving(tmp_path, COORDINATED) as serving, serving.connect() as wire:
        create_topic(wire, "t")
        assert commit(wire, group, {("t", 0): 7}, version=0) == [ErrorCode.INVALID_GROUP_ID]
        asked = [OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
        (topic,) = wire.ask(OffsetFetchRequest(group_id=group, topics=asked), 0).topics
        (partition,) = topic.partitions
        assert partition.error_code == ErrorCode.INVALID_GROUP_ID
        assert partition.committed_offset == -1
        # The connection and the broker go on.
        assert commit(wire, "g", {("t", 0): 7}, version=0) == [0]
