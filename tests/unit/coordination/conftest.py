"""Runs `async def` tests, and gives them each implementation of the contract in turn."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import pytest

from barnabas.coordination.contract import Coordination
from barnabas.coordination.embedded import EmbeddedCoordination, EmbeddedStore
from barnabas.coordination.memory import MemoryCoordination, MemoryStore


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
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


@pytest.fixture(params=[MemoryService, EmbeddedService], ids=["memory", "embedded"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> MemoryService | EmbeddedService:
    return request.param(tmp_path)
