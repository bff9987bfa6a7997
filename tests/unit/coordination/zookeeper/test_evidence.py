"""Whether a write was done, told from the tree alone: on a tree in memory."""

from __future__ import annotations

import pytest

from barnabas.coordination.contract import Check, Coordination, Create, Delete, Operation, Set
from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.coordination.zookeeper.evidence import outcome


async def sessions() -> tuple[MemoryStore, Coordination, Coordination]:
    store = MemoryStore()
    both = MemoryCoordination(store), MemoryCoordination(store)
    for each in both:
        await each.start()
    await both[0].create("/q")
    await both[0].create("/n", b"old")
    await both[0].create("/gone")
    return store, *both


@pytest.mark.parametrize(
    "operations",
    [
        [Create("/a", b"x")],
        [Create("/a", b"x", ephemeral=True)],
        [Create("/q/s", b"x", sequence=True)],
        [Create("/q/s", b"x", ephemeral=True, sequence=True)],
        [Set("/n", b"new", 0)],
        [Set("/n", b"new")],
        [Delete("/gone")],
        [Create("/a", ephemeral=True), Set("/n", b"new", 0), Check("/q"), Delete("/gone")],
    ],
)
async def test_what_was_done_is_found_with_its_results(operations: list[Operation]) -> None:
    """Before the write nothing speaks for it; after it everything does."""
    store, one, _ = await sessions()
    before = store.tree.zxid
    assert await outcome(one, operations, before) is None
    results = await one.multi(operations)
    assert await outcome(one, operations, before) == results
    if not isinstance(operations[0], Delete):
        later = store.tree.zxid
        assert await outcome(one, operations, later) is None, "it was done before that"


async def test_the_work_of_others_is_not_ours() -> None:
    """Another owner, other data, another version, or a transaction done in two parts."""
    store, one, two = await sessions()
    before = store.tree.zxid
    await two.create("/a", b"x", ephemeral=True)
    await two.create("/q/s", b"x", ephemeral=True, sequence=True)
    await two.set("/n", b"theirs")
    for lost in (
        Create("/a", b"x", ephemeral=True),
        Create("/q/s", b"x", ephemeral=True, sequence=True),
        Create("/q/s", b"y", sequence=True),
        Create("/none/s", b"y", sequence=True),
        Set("/n", b"ours", 0),
        Set("/n", b"theirs", 7),
        Set("/none", b""),
    ):
        assert await outcome(one, [lost], before) is None, lost
    await one.create("/b", b"x")
    await one.set("/n", b"ours")
    assert await outcome(one, [Create("/b", b"x"), Set("/n", b"ours")], before) is None
    assert await outcome(one, [Check("/n")], before) is None
