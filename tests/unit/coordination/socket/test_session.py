"""Sessions over a socket: they end with their connection, or when they hang."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.unit.coordination.socket.serving import connect, ended, served

from barnabas.coordination.contract import SessionExpired
from barnabas.coordination.embedded import EmbeddedStore
from barnabas.coordination.memory import MemoryStore
from barnabas.coordination.socket.session import ServiceGone, SocketCoordination


async def test_a_process_that_hangs_expires(tmp_path: Path) -> None:
    async with served(MemoryStore(), tmp_path) as server:
        one, two = await connect(server, timeout_ms=150), await connect(server)
        await one.create("/live", ephemeral=True)
        gone = asyncio.Event()
        await two.exists("/live", lambda event: gone.set())
        assert one.contact is not None
        asked_s = one.contact.asked_s
        while one.contact.asked_s == asked_s:  # until a heartbeat was answered
            await one.exists("/")
        assert not gone.is_set()
        assert one._heartbeat is not None
        one._heartbeat.cancel()
        await gone.wait()
        await ended(one)
        assert one.contact is None
        with pytest.raises(SessionExpired):
            await one.exists("/live")
        await two.close()


async def test_the_end_of_the_server_ends_the_sessions(tmp_path: Path) -> None:
    async with served(MemoryStore(), tmp_path) as server:
        one = await connect(server)
        waiting = asyncio.ensure_future(one.create("/a"))
        await asyncio.sleep(0)
        await server.stop()
        await ended(one)
        with pytest.raises(SessionExpired):
            await waiting
        assert not server.path.exists()
        late = SocketCoordination(server.path, timeout_ms=1000)
        with pytest.raises(ServiceGone, match=r"tree at .*tree\.sock has ended"):
            await late.start()


async def test_many_sessions_see_each_others_changes_in_order(tmp_path: Path) -> None:
    """A watch fires before its session can see the change, however fast the writers are."""
    async with served(EmbeddedStore(tmp_path / "tree.db"), tmp_path) as server:
        writer = await connect(server)
        await writer.create("/n", b"0")
        readers = [await connect(server) for _ in range(3)]

        async def follow(session: SocketCoordination) -> None:
            changed = asyncio.Event()
            seen, _ = await session.get("/n", lambda event: changed.set())
            while seen != b"50":
                now, _ = await session.get("/n")
                assert now == seen or changed.is_set()
                await changed.wait()
                changed = asyncio.Event()
                seen, _ = await session.get("/n", lambda event, changed=changed: changed.set())  # type: ignore[misc]

        following = asyncio.gather(*map(follow, readers))
        for number in range(1, 51):
            await writer.set("/n", b"%d" % number)
        await following
        for session in (writer, *readers):
            await session.close()
