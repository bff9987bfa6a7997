"""Changed configs: notices in the coordination tree, which every broker follows.

A notice says whose configs changed, not what they are now: they are read anew. The broker that made
the change has let it act already, and finds nothing new. Old notices are removed by whoever sees
them.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from barnabas.controller import nodes
from barnabas.coordination.contract import Coordination, Event, NoNode, SessionExpired
from barnabas.model.errors import BarnabasError, CorruptFileError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

logger = logging.getLogger("barnabas.configs")

KEPT = 1000
"""Notices beyond so many are removed: every broker has seen them long ago."""


class ConfigNotices:
    """Follows the notices of one cluster."""

    def __init__(self, broker: Broker, tree: Coordination) -> None:
        self._broker = broker
        self._tree = tree
        self._last = ""
        self._started = False
        self._reading = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Follow what comes from now on; in a new session, also what came in between."""
        await self._read()

    def _watch(self, _: Event) -> None:
        task = asyncio.get_running_loop().create_task(self._follow())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self) -> None:
        try:
            await self._read()
        except SessionExpired:
            return
        except BarnabasError as failure:
            logger.error("changed configs could not be read: %s", failure)

    async def _read(self) -> None:
        async with self._reading:
            names = await self._tree.children(nodes.CONFIG_CHANGES, self._watch)
            fresh = [name for name in names if name > self._last] if self._started else []
            self._started = True
            if names:
                self._last = max(names)
            for name in fresh:
                await self._act(f"{nodes.CONFIG_CHANGES}/{name}")
            for name in names[:-KEPT]:
                try:
                    await self._tree.delete(f"{nodes.CONFIG_CHANGES}/{name}")
                except NoNode:
                    continue

    async def _act(self, path: str) -> None:
        try:
            data, _ = await self._tree.get(path)
            entity_type, name = nodes.decode_config_change(path, data)
        except (NoNode, CorruptFileError) as failure:
            logger.error("a notice of changed configs is passed over: %s", failure)
            return
        values = await self._broker.config_store.get(entity_type, name)
        self._broker.configs_changed(entity_type, name, values)
