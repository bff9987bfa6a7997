"""Dynamic configs in the coordination tree, with a change notification for every broker."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from barnabas.coordination.contract import (
    Coordination,
    Create,
    NodeExists,
    NoNode,
    Operation,
    Set,
)
from barnabas.metadata import tree_schema as nodes
from barnabas.model.errors import CorruptFileError

logger = logging.getLogger("barnabas.controller")


class ConfigStore:
    """Reads and writes the configs of topics, brokers and other entities."""

    def __init__(self, tree: Coordination) -> None:
        self._tree = tree

    async def get(self, entity_type: str, name: str) -> dict[str, str]:
        """Read the configs of one entity; empty if it has no node."""
        path = nodes.config_path(entity_type, name)
        try:
            data, _ = await self._tree.get(path)
        except NoNode:
            return {}
        return nodes.decode_config(path, data)

    async def get_all(self, entity_type: str) -> dict[str, dict[str, str]]:
        """Read the configs of every entity of a type."""
        names = await self._tree.children(f"/config/{entity_type}")
        return await self.get_each(entity_type, [nodes.desanitized(name) for name in names])

    async def get_each(self, entity_type: str, names: Collection[str]) -> dict[str, dict[str, str]]:
        """Read the configs of some entities of a type."""
        paths = [nodes.config_path(entity_type, name) for name in names]
        found = await self._tree.get_many(paths)
        return {
            name: nodes.decode_config(path, got[0]) if got is not None else {}
            for name, path, got in zip(names, paths, found, strict=True)
        }

    async def get_readable(
        self, entity_type: str, names: Collection[str]
    ) -> dict[str, dict[str, str]]:
        """Read the configs of some entities of a type; unreadable ones are logged and skipped."""
        paths = [nodes.config_path(entity_type, name) for name in names]
        found = await self._tree.get_many(paths)
        readable: dict[str, dict[str, str]] = {}
        for name, path, got in zip(names, paths, found, strict=True):
            try:
                readable[name] = nodes.decode_config(path, got[0]) if got is not None else {}
            except CorruptFileError as failure:
                logger.error("configs unreadable, ignored: %s", failure)
        return readable

    async def set(self, entity_type: str, name: str, configs: Mapping[str, str]) -> None:
        """Replace the configs of an entity, and write a change notification."""
        path = nodes.config_path(entity_type, name)
        data = nodes.encode_config(configs)
        notice = Create(
            f"{nodes.CONFIG_CHANGES}/config_change_",
            nodes.encode_config_change(f"{entity_type}/{nodes.sanitized(name)}"),
            sequence=True,
        )
        while True:
            exists = await self._tree.exists(path) is not None
            change: Operation = Set(path, data) if exists else Create(path, data)
            try:
                await self._tree.multi([change, notice])
                return
            except (NodeExists, NoNode) as overtaken:
                if overtaken.path != path:
                    raise
