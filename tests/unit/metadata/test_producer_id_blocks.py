"""Blocks of producer ids: nobody gets the same one, whatever happens in between."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.controller.trees import prepared, session

from barnabas.coordination.memory import MemoryStore
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.producer_id_blocks import ProducerIdBlocks
from barnabas.model.errors import CorruptFileError


def test_brokers_take_turns() -> None:
    async def story() -> None:
        store = MemoryStore()
        one = ProducerIdBlocks(await prepared(store), 0)
        two = ProducerIdBlocks(await session(store), 1)
        blocks = await asyncio.gather(*(each.take() for each in (one, two) * 3))
        assert sorted(block.start for block in blocks) == [0, 1000, 2000, 3000, 4000, 5000]
        assert {len(block) for block in blocks} == {1000}

    asyncio.run(story())


def test_the_node_tells_who_took_the_last_block() -> None:
    async def story() -> None:
        tree = await prepared()
        await ProducerIdBlocks(tree, 7).take()
        data, _ = await tree.get(nodes.PRODUCER_ID_BLOCK)
        assert data == b'{"version":1,"broker":7,"block_start":"0","block_end":"999"}'

    asyncio.run(story())


@pytest.mark.parametrize(
    ("known", "first"), [(-1, 1000), (0, 1000), (999, 1000), (1000, 2000), (4321, 5000)]
)
def test_ids_of_an_adopted_log_are_never_given_out(known: int, first: int) -> None:
    """One block was taken; the next begins beyond what the log knows."""

    async def story() -> None:
        blocks = ProducerIdBlocks(await prepared(), 0)
        await blocks.take()
        await blocks.reserve(known)
        assert (await blocks.take()).start == first

    asyncio.run(story())


def test_a_damaged_node_is_not_taken_for_the_beginning() -> None:
    async def story() -> None:
        tree = await prepared()
        await tree.set(nodes.PRODUCER_ID_BLOCK, b'{"version":1,"broker":7}')
        with pytest.raises(CorruptFileError, match=nodes.PRODUCER_ID_BLOCK):
            await ProducerIdBlocks(tree, 0).take()

    asyncio.run(story())
