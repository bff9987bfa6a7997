"""Delegation tokens of a cluster: two brokers and one tree, notices, and lost sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count

import pytest
from tests.unit.controller.trees import prepared, session

from barnabas.broker.cluster import delegation_tokens
from barnabas.broker.cluster.delegation_tokens import SharedTokens
from barnabas.coordination.contract import Coordination, Found, NoPermission, Watch
from barnabas.coordination.memory import MemoryStore
from barnabas.metadata import tree_schema as nodes
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.delegation_tokens import DelegationToken, DelegationTokens, Lifetimes
from barnabas.security.principal import Principal

ALICE, ODD = Principal("User", "alice"), Principal("User", "CN=a b/ü,O=x:y*~")
NUMBERS = count()


class Member:
    """What a broker has of tokens."""

    def __init__(self, tree: Coordination, secret: str | None = "abc") -> None:
        self.now_ms = 1000
        self.tokens = DelegationTokens(secret, lambda size: next(NUMBERS).to_bytes(size, "big"))
        self.shared = SharedTokens(tree, self.tokens, lambda: self.now_ms)

    def made(self, longest_ms: int = 5000) -> DelegationToken:
        times = Lifetimes(longest_ms, 2000)
        return self.tokens.create(ODD, ALICE, [ALICE, ODD], 0, times, self.now_ms)


async def two() -> tuple[MemoryStore, Member, Member]:
    store = MemoryStore()
    members = Member(await prepared(store)), Member(await session(store))
    for member in members:
        await member.shared.start()
    return store, *members


async def until(holds: Callable[[], object]) -> None:
    """Let the loop turn until something holds."""
    for _ in range(500):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError


def test_other_brokers_learn_of_every_change() -> None:
    async def story() -> None:
        _, one, other = await two()
        token = one.made()
        await one.shared.add(token)
        await until(lambda: other.tokens.get(token.token_id) == token)
        renewed = token._replace(expires_ms=4000)
        await other.shared.renew(renewed)
        await until(lambda: one.tokens.get(token.token_id) == renewed)
        await one.shared.remove(token.token_id)
        await until(lambda: other.tokens.get(token.token_id) is None)

    asyncio.run(story())


def test_tokens_are_loaded_with_each_session() -> None:
    async def story() -> None:
        store, one, _ = await two()
        kept, removed = one.made(), one.made()
        await one.shared.add(kept)
        await one.shared.add(removed)
        late = Member(await session(store))
        late.tokens.set(one.made())  # known from before, and gone by now
        await late.shared.start()
        assert set(late.tokens.all()) == {kept, removed}
        await one.shared.remove(removed.token_id)
        await late.shared.start()
        assert late.tokens.all() == [kept]

    asyncio.run(story())


def test_a_token_that_another_broker_has_removed_cannot_be_renewed() -> None:
    async def story() -> None:
        _, one, other = await two()
        token = one.made()
        await one.shared.add(token)
        await until(lambda: other.tokens.get(token.token_id))
        await one.shared.remove(token.token_id)
        with pytest.raises(RequestError) as failure:
            await other.shared.renew(token._replace(expires_ms=4000))
        assert failure.value.code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        assert other.tokens.get(token.token_id) is None
        await other.shared.remove(token.token_id)  # to no effect

    asyncio.run(story())


def test_a_sweep_removes_what_has_expired() -> None:
    async def story() -> None:
        _, one, other = await two()
        short, long = one.made(500), one.made()
        await one.shared.add(short)
        await one.shared.add(long)
        one.now_ms = 1501
        await one.shared.sweep()
        assert one.tokens.all() == [long]
        await until(lambda: other.tokens.all() == [long])

    asyncio.run(story())


def test_old_notices_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delegation_tokens, "NOTICES_KEPT", 2)

    async def story() -> None:
        store, one, other = await two()
        tokens = [one.made() for _ in range(6)]
        for token in tokens:
            await one.shared.add(token)
        await until(lambda: len(other.tokens.all()) == 6)
        tree = await session(store)
        assert len(await tree.children(nodes.DELEGATION_TOKEN_CHANGES)) <= 3

    asyncio.run(story())


@pytest.mark.parametrize(
    "data", [b"", b"{}", b'{"version":3,"owner":"nobody","renewers":[],"tokenId":"x"}', b"\xff"]
)
def test_unreadable_tokens_let_nobody_in(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        store, one, _ = await two()
        tree = await session(store)
        await tree.create(f"{nodes.DELEGATION_TOKENS}/x", data)
        await one.shared.start()
        assert one.tokens.all() == []

    asyncio.run(story())
    assert "token 'x' is unreadable, nobody can log in with it" in caplog.text


def test_tokens_of_older_releases_are_read() -> None:
    node = nodes.DelegationTokenNode.decode(
        "/x",
        b'{"version":1,"owner":"User%3Aalice","renewers":["User%3Abob"],"issueTimestamp":1,'
        b'"maxTimestamp":3,"expiryTimestamp":2,"tokenId":"x"}',
    )
    assert node == nodes.DelegationTokenNode(
        "x", "User:alice", "User:alice", ("User:bob",), 1, 2, 3
    )


def test_without_a_secret_nothing_is_created() -> None:
    async def story() -> None:
        tree = await prepared(MemoryStore())
        await Member(tree, None).shared.start()
        assert await tree.exists(nodes.DELEGATION_TOKENS) is None

    asyncio.run(story())


def test_tokens_that_may_not_be_read_hold_up_no_others(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        _, one, other = await two()
        hidden, token = one.made(), one.made()
        tree = other.shared._tree
        read = tree.get

        async def get(path: str, watch: Watch | None = None) -> Found:
            if path.endswith(hidden.token_id):
                raise NoPermission(path, "not allowed")
            return await read(path, watch)

        tree.get = get  # type: ignore[method-assign]
        await one.shared.add(hidden)
        await one.shared.add(token)
        await until(lambda: other.tokens.all() == [token])

    asyncio.run(story())
    assert "is unreadable, nobody can log in with it: not allowed" in caplog.text
