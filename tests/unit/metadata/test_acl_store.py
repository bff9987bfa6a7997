"""ACLs in the tree: conditional writes, each with a notice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

import pytest
from tests.unit.controller.trees import prepared, session

from barnabas.coordination.contract import Coordination, NoNode
from barnabas.coordination.memory import MemoryStore
from barnabas.metadata import acl_nodes as nodes
from barnabas.metadata import acl_store
from barnabas.metadata.acl_store import AclStore
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.acl.binding import Binding, Entry, Pattern, PatternType, Permission
from barnabas.security.authorizer import Operation, ResourceType

ORDERS = Pattern(ResourceType.TOPIC, "orders")
PREFIX = Pattern(ResourceType.TOPIC, "ord", PatternType.PREFIXED)
READ = Entry("User:a", "*", Operation.READ, Permission.ALLOW)
WRITE = Entry("User:a", "*", Operation.WRITE, Permission.ALLOW)


class Pauses:
    """Counts the pauses between attempts instead of sleeping."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


async def opened(tree: Coordination, pauses: Pauses | None = None) -> AclStore:
    store = AclStore(tree, lambda: 0.5, pauses or Pauses())
    await store.create_paths()
    return store


async def notices(tree: Coordination, pattern_type: PatternType) -> list[bytes]:
    parent = nodes.CHANGES[pattern_type]
    return [(await tree.get(f"{parent}/{name}"))[0] for name in await tree.children(parent)]


def test_acls_are_stored_and_announced() -> None:
    async def story() -> None:
        tree = await prepared()
        store = await opened(tree)
        assert await store.update(ORDERS, {READ}.union) == {READ}
        assert await store.update(ORDERS, {WRITE}.union) == {READ, WRITE}
        await store.update(PREFIX, {READ}.union)
        assert set(await store.load()) == {
            Binding(ORDERS, READ),
            Binding(ORDERS, WRITE),
            Binding(PREFIX, READ),
        }
        assert await store.get(ORDERS) == {READ, WRITE}
        assert await notices(tree, PatternType.LITERAL) == [b"TOPIC:orders"] * 2
        assert len(await notices(tree, PatternType.PREFIXED)) == 1

    asyncio.run(story())


def test_without_entries_there_is_no_node() -> None:
    async def story() -> None:
        tree = await prepared()
        store = await opened(tree)
        await store.update(ORDERS, {READ}.union)
        assert await store.update(ORDERS, lambda old: old - {READ}) == frozenset()
        with pytest.raises(NoNode):
            await tree.get(nodes.acl_path(ORDERS))
        assert await store.get(ORDERS) == frozenset()
        assert len(await notices(tree, PatternType.LITERAL)) == 2

    asyncio.run(story())


def test_no_change_is_no_write() -> None:
    async def story() -> None:
        tree = await prepared()
        store = await opened(tree)
        await store.update(ORDERS, {READ}.union)
        await store.update(ORDERS, {READ}.union)
        await store.update(PREFIX, lambda old: old - {READ})
        assert len(await notices(tree, PatternType.LITERAL)) == 1
        assert await notices(tree, PatternType.PREFIXED) == []

    asyncio.run(story())


@pytest.mark.parametrize("before", [[], [READ]])
def test_who_is_overtaken_reads_again(before: list[Entry]) -> None:
    """Both changes survive, whether the node was created, changed or deleted in between."""

    async def story() -> None:
        shared = MemoryStore()
        tree = await prepared(shared)
        other = await opened(await session(shared))
        pauses = Pauses()
        store = await opened(tree, pauses)
        await store.update(ORDERS, lambda _: before)
        second = Entry("User:b", "*", Operation.READ, Permission.ALLOW)
        overtaking = [{second}.union, lambda old: old - {READ, second}, None]
        tree_get = tree.get

        async def get(path: str, watch: object = None) -> object:
            found: object
            try:
                found = await tree_get(path)
            except NoNode:
                found = None
            change = overtaking.pop(0)
            if change is not None:
                await other.update(ORDERS, change)  # type: ignore[arg-type]
            if found is None:
                raise NoNode(path, "not yet")
            return found

        tree.get = get  # type: ignore[method-assign, assignment]
        assert await store.update(ORDERS, {WRITE}.union) == {WRITE}
        assert pauses.seconds == [0.125] * (2 if before else len(pauses.seconds))
        assert pauses.seconds

    asyncio.run(story())


def test_attempts_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is always overtaken gives up, after as many attempts as Kafka makes."""

    async def story() -> None:
        shared = MemoryStore()
        tree = await prepared(shared)
        other = await opened(await session(shared))
        pauses = Pauses()
        store = await opened(tree, pauses)
        number = 0

        def change(old: frozenset[Entry]) -> Iterable[Entry]:
            return old | {READ}

        tree_multi = tree.multi

        async def multi(operations: object) -> object:
            nonlocal number
            number += 1
            entry = WRITE._replace(principal=f"User:{number}")
            await other.update(ORDERS, {entry}.union)
            return await tree_multi(operations)  # type: ignore[arg-type]

        tree.multi = multi  # type: ignore[method-assign, assignment]
        with pytest.raises(RequestError) as caught:
            await store.update(ORDERS, change)
        assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
        assert len(pauses.seconds) == acl_store.ATTEMPTS_MAX - 1
        assert READ not in await store.get(ORDERS)

    asyncio.run(story())


def test_an_unreadable_node_does_not_hide_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        tree = await prepared()
        store = await opened(tree)
        await store.update(ORDERS, {READ}.union)
        await tree.create("/kafka-acl/Topic/broken", b"?")
        assert await store.load() == [Binding(ORDERS, READ)]

    with caplog.at_level(logging.ERROR, "barnabas.authorizer"):
        asyncio.run(story())
    (record,) = caplog.records
    assert "Topic:LITERAL:broken" in record.getMessage()
