"""Dynamic configs in the coordination tree, with a change notification for every broker."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping

from barnabas.coordination.contract import (
    ANY_VERSION,
    BadVersion,
    Coordination,
    Create,
    NodeExists,
    NoNode,
    Operation,
    Set,
)
from barnabas.metadata import tree_schema as nodes
from barnabas.model.errors import CorruptFileError

logger = logging.getLogger("barnabas.config")


class ConfigStore:
    """Reads and writes the configs of topics, brokers, users, client ids and addresses.

    The client ids of a user are entities of their own type: see `tree_schema.clients_of`.
    """

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
        """Read the configs of every entity of a type; none if the type has no node yet."""
        try:
            names = await self._tree.children(f"/config/{entity_type}")
        except NoNode:
            if entity_type not in nodes.LATER_CONFIG_TYPES:
                raise
            return {}
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

    async def get_all_clients(self) -> dict[str, dict[str, dict[str, str]]]:
        """Read the configs of every user's client ids, by the entity type that holds them."""
        users = [nodes.desanitized(user) for user in await self._tree.children("/config/users")]
        entity_types = [nodes.clients_of(user) for user in users]
        parents = await self._tree.get_many([f"/config/{each}" for each in entity_types])
        return {
            entity_type: await self.get_all(entity_type)
            for entity_type, parent in zip(entity_types, parents, strict=True)
            if parent is not None
        }

    async def set(self, entity_type: str, name: str, configs: Mapping[str, str]) -> None:
        """Replace the configs of an entity, and write a change notification."""
        path = nodes.config_path(entity_type, name)
        while True:
            exists = await self._tree.exists(path) is not None
            if await self._write(entity_type, name, configs, ANY_VERSION if exists else None):
                return

    async def update(
        self, entity_type: str, name: str, change: Callable[[dict[str, str]], Mapping[str, str]]
    ) -> dict[str, str]:
        """Replace the configs of an entity by what `change` returns for them; return that.

        If another broker changes them meanwhile, `change` is called again with its result.
        """
        path = nodes.config_path(entity_type, name)
        while True:
            found = (await self._tree.get_many([path]))[0]
            before = {} if found is None else nodes.decode_config(path, found[0])
            after = dict(change(dict(before)))
            if after == before:
                return after
            if await self._write(
                entity_type, name, after, None if found is None else found[1].version
            ):
                return after

    async def _write(
        self, entity_type: str, name: str, configs: Mapping[str, str], version: int | None
    ) -> bool:
        """Write a node of that version, or a new one (None); return False if overtaken."""
        path = nodes.config_path(entity_type, name)
        data = nodes.encode_config(configs)
        notice = Create(
            f"{nodes.CONFIG_CHANGES}/config_change_",
            nodes.encode_config_change(f"{entity_type}/{nodes.sanitized(name)}"),
            sequence=True,
        )
        change: Operation = Create(path, data) if version is None else Set(path, data, version)
        if version is None and (
            nodes.user_of(entity_type) is not None or entity_type in nodes.LATER_CONFIG_TYPES
        ):
            await self._ensure_parent(path)
        try:
            await self._tree.multi([change, notice])
        except (NodeExists, NoNode, BadVersion) as overtaken:
            if overtaken.path != path:
                raise
            return False
        return True

    async def _ensure_parent(self, path: str) -> None:
        """Create the nodes above the first client id of a user, or the first of a newer type."""
        parent = path.rpartition("/")[0]
        if await self._tree.exists(parent) is None:
            try:
                await self._tree.create(parent, make_parents=True)
            except NodeExists:
                return
