"""Offsets of the oldest clients, kept in the tree."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.tree_offsets import TreeOffsets
from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError


def test_offsets_are_kept_as_text() -> None:
    """Where ZooKeeper-era consumers look for them."""

    async def story() -> None:
        tree = MemoryCoordination(MemoryStore())
        await tree.start()
        offsets = TreeOffsets(tree)
        assert await offsets.fetch("g", "t", 0) is None
        for offset in (5, 7):
            await offsets.store("g", "t", 0, offset)
            assert await offsets.fetch("g", "t", 0) == offset
        assert (await tree.get("/consumers/g/offsets/t/0"))[0] == b"7"
        await tree.set("/consumers/g/offsets/t/0", b"soon")
        assert await offsets.fetch("g", "t", 0) is None

    asyncio.run(story())


def test_names_that_cannot_be_nodes() -> None:
    """They have no offsets, and cannot get any."""

    async def story() -> None:
        tree = MemoryCoordination(MemoryStore())
        await tree.start()
        offsets = TreeOffsets(tree)
        for group in ("", ".", ".."):
            assert await offsets.fetch(group, "t", 0) is None
            with pytest.raises(RequestError) as refusal:
                await offsets.store(group, "t", 0, 1)
            assert refusal.value.code == ErrorCode.INVALID_GROUP_ID
        for topic in ("", "..", "a\0b", "a//b"):
            assert await offsets.fetch("g", topic, 0) is None
        await offsets.store("a/b é", "t", 0, 1)
        assert await offsets.fetch("a/b é", "t", 0) == 1

    asyncio.run(story())
