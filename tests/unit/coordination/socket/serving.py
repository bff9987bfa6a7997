"""A tree that is served to the tests of its server and its sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from barnabas.coordination.contract import SessionState
from barnabas.coordination.socket.server import TreeServer
from barnabas.coordination.socket.session import SocketCoordination
from barnabas.coordination.store import Store


@asynccontextmanager
async def served(store: Store, folder: Path) -> AsyncIterator[TreeServer]:
    server = TreeServer(store, folder / "tree.sock")
    await server.start()
    try:
        async with asyncio.timeout(60):
            yield server
    finally:
        await server.stop()


async def connect(server: TreeServer, timeout_ms: int = 40_000) -> SocketCoordination:
    session = SocketCoordination(server.path, timeout_ms=timeout_ms)
    await session.start()
    return session


async def ended(session: SocketCoordination) -> None:
    gone = asyncio.Event()
    session.add_session_listener(lambda state: gone.set())
    if session.state is SessionState.CONNECTED:
        await gone.wait()
    assert session.state is SessionState.EXPIRED
