"""A store forgets its sessions when they end, and outlives the ones that are killed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.coordination.contract import SessionExpired, SessionState
from barnabas.coordination.embedded import EmbeddedCoordination, EmbeddedStore
from barnabas.coordination.memory import MemoryCoordination, MemoryStore


async def test_ended_sessions_are_forgotten():
    store = MemoryStore()
    one, two = MemoryCoordination(store), MemoryCoordination(store)
    await one.start()
    await two.start()
    assert list(store.subscribers) == list(store.tree.sessions) == [one.session_id, two.session_id]
    await one.close()
    store.expire(two.session_id)
    assert not store.subscribers
    assert not store.tree.sessions
    await asyncio.sleep(0)
    assert two.state is SessionState.EXPIRED


async def test_a_heartbeat_of_an_ended_session_is_told_so():
    store = MemoryStore()
    one = MemoryCoordination(store)
    await one.start()
    store.tree.end_session(one.session_id)
    store.touch(one.session_id, one, 0.0)
    await asyncio.sleep(0)
    assert one.state is SessionState.EXPIRED
    with pytest.raises(SessionExpired):
        await one.exists("/")


async def test_a_killed_broker_is_expired_and_the_others_go_on(tmp_path: Path):
    store = EmbeddedStore(tmp_path / "coordination.db")
    killed, other = EmbeddedCoordination(store), EmbeddedCoordination(store)
    await killed.start()
    await other.start()
    await killed.create("/live", ephemeral=True)
    store.expire(killed.session_id)
    await killed.close()
    assert await other.children("/") == []
    await other.close()
    # The last one closed the file: it can be taken by another store.
    again = EmbeddedCoordination(EmbeddedStore(store.path))
    await again.start()
    await again.close()


async def test_a_session_knows_when_it_was_last_known_to_be_alive():
    store = MemoryStore()
    held: list[object] = []
    passes = True

    def carry(act):
        if passes:
            act()
        else:
            held.append(act)

    session = MemoryCoordination(store, timeout_ms=300, to_store=carry)
    assert session.contact is None
    await session.start()
    await asyncio.sleep(0.12)
    contact = session.contact
    assert contact is not None
    assert contact.timeout_ms == 300
    assert contact.heard_ago_ms <= contact.asked_ago_ms < 120, "heartbeats were answered"
    passes = False
    store.go_away()
    await asyncio.sleep(0.4)
    assert held
    contact = session.contact
    assert contact is not None, "a service that is away ends no session"
    assert contact.heard_ago_ms > 300
    store.come_back()
    passes = True
    await asyncio.sleep(0.1)
    assert session.contact is not None
    assert session.contact.heard_ago_ms < 100
    store.expire(session.session_id)
    await asyncio.sleep(0)
    assert session.contact is None
    without_timeout = MemoryCoordination(store)
    await without_timeout.start()
    assert without_timeout.contact is None
