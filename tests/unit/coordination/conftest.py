"""Runs `async def` tests, and gives them each implementation of the contract in turn."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
from tests.zookeeper import chroots, secured, zookeeper, zookeeper_classpath  # noqa: F401

from barnabas.coordination.contract import Coordination, SessionState
from barnabas.coordination.embedded import EmbeddedCoordination, EmbeddedStore
from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.coordination.socket.server import TreeServer
from barnabas.coordination.socket.session import SocketCoordination
from barnabas.testing.zookeeper import ZooKeeperServer

SESSION_TIMEOUT_MS = 40_000


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}

    async def run() -> None:
        try:
            await pyfuncitem.obj(**arguments)
        finally:
            for value in arguments.values():
                if isinstance(value, SocketService):
                    await value.stop()

    if any(isinstance(value, SocketService) for value in arguments.values()):
        uvloop.run(run())  # as brokers do: its transports are not those of asyncio
    else:
        asyncio.run(run())
    return True


class MemoryService:
    def __init__(self, folder: Path) -> None:
        self.store = MemoryStore()

    async def connect(self) -> Coordination:
        session = MemoryCoordination(self.store)
        await session.start()
        return session

    async def expire(self, session: Coordination) -> None:
        self.store.expire(session.session_id)


class EmbeddedService:
    def __init__(self, folder: Path) -> None:
        self.store = EmbeddedStore(folder / "coordination.db")

    async def connect(self) -> Coordination:
        session = EmbeddedCoordination(self.store)
        await session.start()
        return session

    async def expire(self, session: Coordination) -> None:
        self.store.expire(session.session_id)


class SocketService:
    """An embedded tree, served over a socket."""

    def __init__(self, folder: Path) -> None:
        self.store = EmbeddedStore(folder / "coordination.db")
        self.server = TreeServer(self.store, folder / "coordination.sock")
        self._starting: asyncio.Task[None] | None = None

    async def connect(self) -> Coordination:
        if self._starting is None:
            self._starting = asyncio.ensure_future(self.server.start())
        await self._starting
        session = SocketCoordination(self.server.path, timeout_ms=SESSION_TIMEOUT_MS)
        await session.start()
        return session

    async def expire(self, session: Coordination) -> None:
        self.store.expire(session.session_id)

    async def stop(self) -> None:
        await self.server.stop()


class ZooKeeperService:
    """A chroot of its own on a server that all tests share."""

    def __init__(self, server: ZooKeeperServer, chroot: str) -> None:
        from barnabas.coordination.zookeeper.settings import ZooKeeperSettings

        self.settings = ZooKeeperSettings((server.address,), chroot, SESSION_TIMEOUT_MS, 60_000)

    async def connect(self) -> Coordination:
        from barnabas.coordination.zookeeper.coordination import ZooKeeperCoordination

        session = ZooKeeperCoordination(self.settings)
        await session.start()
        return session

    async def expire(self, session: Any) -> None:
        """Take the session over by a second connection, end it there, and wait for the news."""
        from kazoo.client import KazooClient

        expired = asyncio.Event()
        session.add_session_listener(
            lambda state: expired.set() if state is SessionState.EXPIRED else None
        )
        twin = KazooClient(
            self.settings.servers[0], client_id=session._link._client.client_id, timeout=20
        )
        await asyncio.to_thread(twin.start)
        await asyncio.to_thread(twin.stop)
        twin.close()
        async with asyncio.timeout(120):
            await expired.wait()


@pytest.fixture
def zookeeper_service(
    zookeeper: ZooKeeperServer,  # noqa: F811  a fixture is asked for by its name
    chroots: Iterator[str],  # noqa: F811
) -> ZooKeeperService:
    return ZooKeeperService(zookeeper, next(chroots))


@pytest.fixture(params=["memory", "embedded", "socket", "zookeeper"])
def service(
    request: pytest.FixtureRequest, tmp_path: Path
) -> MemoryService | EmbeddedService | SocketService | ZooKeeperService:
    if request.param == "memory":
        return MemoryService(tmp_path)
    if request.param == "embedded":
        return EmbeddedService(tmp_path)
    if request.param == "socket":
        return SocketService(tmp_path)
    return request.getfixturevalue("zookeeper_service")
