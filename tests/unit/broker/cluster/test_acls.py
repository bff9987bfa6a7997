"""The ACLs of a cluster on one broker: loaded, followed, changed, through lost sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tests.unit.controller.trees import prepared, session

from barnabas.broker.cluster import acls as module
from barnabas.broker.cluster.acls import Acls
from barnabas.coordination.contract import Coordination
from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.metadata import acl_nodes as nodes
from barnabas.metadata.acl_store import AclStore
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.acl import (
    AclAuthorizer,
    Binding,
    BindingFilter,
    Entry,
    Pattern,
    PatternType,
    Permission,
)
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.security.principal import Principal

ALICE = Principal("User", "alice")
READ = Entry("User:alice", "*", Operation.READ, Permission.ALLOW)


class Broker:
    """The part of a broker that has ACLs."""

    def __init__(self, tree: Coordination) -> None:
        self.now_ms = 0
        self.authorizer = AclAuthorizer()
        self.acls = Acls(tree, AclStore(tree, lambda: 0.0), self.authorizer, lambda: self.now_ms)

    def may_read(self, topic: str) -> bool:
        return self.authorizer.allows(ALICE, "h", Operation.READ, ResourceType.TOPIC, topic)


def literal(name: str) -> Binding:
    return Binding(Pattern(ResourceType.TOPIC, name), READ)


def prefixed(name: str) -> Binding:
    return Binding(Pattern(ResourceType.TOPIC, name, PatternType.PREFIXED), READ)


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until it is so."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not come true")


async def two_brokers() -> tuple[MemoryStore, MemoryCoordination, Broker, Broker]:
    store = MemoryStore()
    tree = await prepared(store)
    one, two = Broker(tree), Broker(await session(store))
    await one.acls.start()
    await two.acls.start()
    return store, tree, one, two


def test_a_change_counts_at_once_here_and_soon_everywhere() -> None:
    async def story() -> None:
        _, _, one, two = await two_brokers()
        assert await one.acls.create([literal("t"), prefixed("log-")]) == [None, None]
        assert one.may_read("t")
        assert one.may_read("log-1")
        await until(lambda: two.may_read("t") and two.may_read("log-1"))
        ((removed,),) = [await two.acls.delete([BindingFilter(name="t")])]
        assert removed == [(literal("t"), None)]
        assert not two.may_read("t")
        await until(lambda: not one.may_read("t"))
        assert one.may_read("log-1")

    asyncio.run(story())


def test_what_was_stored_before_is_loaded() -> None:
    async def story() -> None:
        store, _, one, _ = await two_brokers()
        await one.acls.create([literal("t")])
        third = Broker(await session(store))
        assert not third.may_read("t")
        await third.acls.start()
        assert third.may_read("t")

    asyncio.run(story())


def test_each_acl_is_checked_on_its_own() -> None:
    async def story() -> None:
        _, _, one, _ = await two_brokers()
        errors = await one.acls.create([literal("a/b"), literal("t"), literal("a\x01b")])
        codes = [None if error is None else error.code for error in errors]
        assert codes == [ErrorCode.INVALID_REQUEST, None, ErrorCode.INVALID_REQUEST]
        assert one.may_read("t")

    asyncio.run(story())


def test_an_acl_is_removed_by_the_first_filter_that_matches() -> None:
    async def story() -> None:
        _, _, one, _ = await two_brokers()
        await one.acls.create([literal("t"), literal("u")])
        first, second, third = await one.acls.delete(
            [BindingFilter(name="t"), BindingFilter(), BindingFilter(name="nothing")]
        )
        assert first == [(literal("t"), None)]
        assert second == [(literal("u"), None)]
        assert third == []
        assert len(one.authorizer) == 0

    asyncio.run(story())


def test_without_a_session_the_old_acls_decide() -> None:
    """A broker that cannot hear of changes keeps deciding; with a new session it loads all."""

    async def story() -> None:
        store, tree, one, two = await two_brokers()
        await one.acls.create([literal("t")])
        store.expire(tree.session_id)
        await until(lambda: tree.state.name == "EXPIRED")
        await two.acls.create([literal("u")])
        await two.acls.delete([BindingFilter(name="t")])
        for name in await two.acls._tree.children(nodes.CHANGES[PatternType.LITERAL]):
            await two.acls._tree.delete(f"{nodes.CHANGES[PatternType.LITERAL]}/{name}")
        assert one.may_read("t")
        assert not one.may_read("u")
        with pytest.raises(RequestError) as caught:
            await one.acls.create([literal("v")])
        assert caught.value.code is ErrorCode.NOT_CONTROLLER, "the client asks another broker"
        await tree.start()
        await one.acls.start()
        assert not one.may_read("t")
        assert one.may_read("u")
        await two.acls.create([literal("v")])
        await until(lambda: one.may_read("v"))

    asyncio.run(story())


def test_notices_of_kafka_are_followed() -> None:
    """Apache Kafka writes the node and the notice one after the other."""

    async def story() -> None:
        _, tree, one, two = await two_brokers()
        await tree.create("/kafka-acl/Topic/k", nodes.encode_entries([READ]))
        await tree.create("/kafka-acl-changes/acl_changes_", b"TOPIC:k", sequence=True)
        await until(lambda: one.may_read("k") and two.may_read("k"))
        await tree.create("/kafka-acl-changes/acl_changes_", b"?", sequence=True)
        await tree.delete("/kafka-acl/Topic/k")
        await tree.create("/kafka-acl-changes/acl_changes_", b"TOPIC:k", sequence=True)
        await until(lambda: not one.may_read("k") and not two.may_read("k"))

    asyncio.run(story())


def test_old_notices_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a quarter of an hour, or beyond a number of them."""

    async def story() -> None:
        _, tree, one, _ = await two_brokers()
        changes = nodes.CHANGES[PatternType.LITERAL]
        await one.acls.create([literal("a")])
        await one.acls.create([literal("b")])
        await until(lambda: len(one.acls._seen[PatternType.LITERAL]) == 2)
        one.now_ms += module.NOTICE_KEPT_MS + 1
        await one.acls.create([literal("c")])
        seen = one.acls._seen[PatternType.LITERAL]
        await until(lambda: len(seen) == 1 and not one.acls._tasks)
        assert len(await tree.children(changes)) == 1
        monkeypatch.setattr(module, "NOTICES_MAX", 3)
        for number in range(10):
            await one.acls.create([literal(f"n{number}")])
            await until(lambda: not one.acls._tasks)
        assert len(await tree.children(changes)) <= 3

    asyncio.run(story())
