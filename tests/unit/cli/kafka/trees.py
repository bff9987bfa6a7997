"""A coordination tree in memory, which tools reach as if it were ZooKeeper."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.unit.controller.trees import prepared, session

from barnabas.coordination.contract import Coordination
from barnabas.coordination.memory import MemoryStore
from barnabas.metadata import tree_schema as nodes


class TreeInMemory:
    """Stands for `on_tree`; what one call has written, the next one finds."""

    def __init__(self) -> None:
        self._store = MemoryStore()
        asyncio.run(self._prepare())
        self.addresses: list[str] = []

    async def _prepare(self) -> None:
        await prepared(self._store)

    def __call__(
        self, connect: str, work: Callable[[Coordination], Awaitable[Any]], _: object = None
    ) -> Any:
        """Do the work in a session of its own."""
        self.addresses.append(connect)

        async def working() -> Any:
            return await work(await session(self._store))

        return asyncio.run(working())

    def register_broker(self, broker: int) -> None:
        """Add a broker that is running."""
        endpoints = [("PLAINTEXT", "h", 9092)]
        data = nodes.BrokerRegistration(endpoints, {"PLAINTEXT": "PLAINTEXT"}, None, 0).encode()

        async def register(tree: Coordination) -> None:
            await tree.create(nodes.broker_path(broker), data, make_parents=True)

        self("", register)
        self.addresses.pop()
