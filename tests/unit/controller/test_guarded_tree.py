"""Writes of a controller: only in its own term, and each change for itself."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.controller.trees import prepared

from barnabas.controller.guarded_tree import OPERATIONS_PER_MULTI, ControllerMoved, GuardedTree
from barnabas.coordination.contract import Create, Delete, NodeExists, NoNode, Operation, Result
from barnabas.coordination.memory import MemoryCoordination
from barnabas.metadata import tree_schema as nodes


async def guarded() -> tuple[MemoryCoordination, GuardedTree]:
    tree = await prepared()
    await tree.create(nodes.CONTROLLER_EPOCH, b"1")
    return tree, GuardedTree(tree, 0)


def test_results_are_those_of_the_change() -> None:
    async def story() -> None:
        _, guard = await guarded()
        assert await guard.write([Create("/a"), Create("/b")]) == ["/a", "/b"]

    asyncio.run(story())


def test_after_a_successor_nothing_is_written() -> None:
    async def story() -> None:
        tree, guard = await guarded()
        await tree.set(nodes.CONTROLLER_EPOCH, b"2")
        with pytest.raises(ControllerMoved):
            await guard.write([Create("/a")])
        with pytest.raises(ControllerMoved):
            await guard.write_each([[Create("/a")], [Create("/b")]])
        assert await tree.exists("/a") is None

    asyncio.run(story())


def test_a_tree_without_an_epoch_is_not_ours() -> None:
    async def story() -> None:
        tree, guard = await guarded()
        await tree.delete(nodes.CONTROLLER_EPOCH)
        with pytest.raises(ControllerMoved):
            await guard.write([Create("/a")])

    asyncio.run(story())


def test_what_speaks_against_a_change_is_raised() -> None:
    async def story() -> None:
        tree, guard = await guarded()
        await tree.create("/a")
        with pytest.raises(NodeExists):
            await guard.write([Create("/b"), Create("/a")])
        with pytest.raises(NoNode):
            await guard.write([Delete("/c")])
        assert await tree.exists("/b") is None

    asyncio.run(story())


def test_one_failing_change_does_not_stop_the_others() -> None:
    async def story() -> None:
        tree, guard = await guarded()
        await tree.create("/b")
        outcomes = await guard.write_each(
            [[Create("/a")], [Create("/half"), Create("/b")], [Create("/c"), Create("/c/d")]]
        )
        assert outcomes[0] == ["/a"]
        assert isinstance(outcomes[1], NodeExists)
        assert outcomes[2] == ["/c", "/c/d"]
        assert await tree.exists("/half") is None

    asyncio.run(story())


def test_no_message_grows_without_bound() -> None:
    """Changes travel together up to the bound, and none is torn apart."""

    async def story() -> None:
        tree, guard = await guarded()
        sizes: list[int] = []
        send = tree.multi

        async def multi(operations: list[Operation]) -> list[Result]:
            sizes.append(len(operations) - 1)
            return await send(operations)

        tree.multi = multi  # type: ignore[assignment, method-assign]
        changes = [[Create(f"/n{n}-{m}") for m in range(3)] for n in range(400)]
        outcomes = await guard.write_each(changes)
        assert outcomes == [[f"/n{n}-{m}" for m in range(3)] for n in range(400)]
        assert sum(sizes) == 1200
        assert max(sizes) <= OPERATIONS_PER_MULTI
        assert all(size % 3 == 0 for size in sizes)
        assert len(sizes) == 3

    asyncio.run(story())


def test_nothing_to_do_is_no_message() -> None:
    async def story() -> None:
        _, guard = await guarded()
        assert await guard.write_each([]) == []

    asyncio.run(story())
