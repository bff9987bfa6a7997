"""Config changes: notices in the coordination tree, which every broker watches.

A notice says whose configs changed, not what they are now: they are read again. The broker that
made the change has already applied it, and finds nothing new. Old notices are removed by any broker
that sees them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from barnabas.coordination.contract import (
    Coordination,
    Event,
    NoNode,
    NoPermission,
    SessionExpired,
)
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.config_store import ConfigStore
from barnabas.model.errors import BarnabasError, CorruptFileError

logger = logging.getLogger("barnabas.config")

KEPT = 1000
"""How many notices are kept: every broker has seen older ones long ago."""


class ConfigNotices:
    """Watches the notices of one cluster."""

    def __init__(
        self,
        tree: Coordination,
        store: ConfigStore,
        on_change: Callable[[str, str, Mapping[str, str]], None],
    ) -> None:
        """Call `on_change` with an entity's type, its name and its configs as they are now."""
        self._tree = tree
        self._store = store
        self._on_change = on_change
        self._last: str | None = None
        """The newest notice that was acted upon; None before anything was read."""
        self._reading = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def skip(self) -> None:
        """Skip the notices that exist: configs that are read from now on include them."""
        self._last = max(await self._tree.children(nodes.CONFIG_CHANGES), default="")

    async def start(self) -> None:
        """Apply new notices, including those since `skip` or between two sessions."""
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
            logger.error(
                "config changes not read, retried in the next session at the latest: %s", failure
            )

    async def _read(self) -> None:
        async with self._reading:
            names = await self._tree.children(nodes.CONFIG_CHANGES, self._watch)
            if self._last is None:
                self._last = max(names, default="")
            for name in names:
                if name > self._last:
                    await self._act(f"{nodes.CONFIG_CHANGES}/{name}")
                    self._last = name
            for name in names[:-KEPT]:
                try:
                    await self._tree.delete(f"{nodes.CONFIG_CHANGES}/{name}")
                except NoNode:
                    continue

    async def _act(self, path: str) -> None:
        try:
            data, _ = await self._tree.get(path)
            entity_type, name = nodes.decode_config_change(path, data)
            values = await self._store.get(entity_type, name)
        except (NoNode, NoPermission, CorruptFileError) as failure:
            logger.error("config change %s skipped: %s", path, failure)
            return
        self._on_change(entity_type, name, values)
