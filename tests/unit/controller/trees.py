"""A coordination tree in memory with the nodes that the first broker of a cluster makes."""

from __future__ import annotations

from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.metadata import tree_schema as nodes


async def session(store: MemoryStore) -> MemoryCoordination:
    """Open a session of a store."""
    tree = MemoryCoordination(store)
    await tree.start()
    return tree


async def prepared(store: MemoryStore | None = None) -> MemoryCoordination:
    """Open a session of a store that has all the persistent nodes."""
    tree = await session(store or MemoryStore())
    for path in nodes.PERSISTENT_PATHS:
        await tree.create(path, make_parents=True)
    return tree
