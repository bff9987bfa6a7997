"""Whether a write whose response was lost with the connection took effect.

ZooKeeper does not say. But it numbers its transactions, and the last response before the write
carried the latest number: a node created or set *since then*, with our data (and, if ephemeral,
owned by our session), is our doing. `outcome` looks at each node that a transaction would have
touched; either all of them confirm it, and the results are returned as the lost response would have
had them, or the write is to be tried (again).

Ambiguous is only a write of another session at the same moment with the same data, where either of
the two may be taken for ours; nothing in the tree depends on which.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from barnabas.coordination.contract import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    NoNode,
    Operation,
    Result,
    Set,
    Stat,
    Watch,
    parent_of,
)


class Reader(Protocol):
    """The reading half of a session."""

    @property
    def session_id(self) -> int: ...
    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]: ...
    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None: ...
    async def children(self, path: str, watch: Watch | None = None) -> list[str]: ...


class _Witness(NamedTuple):
    """A node as the lost write would have left it; zxid is None if the node does not exist."""

    result: Result
    zxid: int | None


async def outcome(
    reader: Reader, operations: Sequence[Operation], before: int
) -> list[Result] | None:
    """Return the results of a write that took effect after transaction `before`, or None."""
    results: list[Result] = []
    zxids: set[int] = set()
    found = False
    for operation in operations:
        if isinstance(operation, Check):
            results.append(None)
            continue
        witness = await _witness(reader, operation, before)
        if witness is None:
            return None
        found = True
        results.append(witness.result)
        if witness.zxid is not None:
            zxids.add(witness.zxid)
    return results if found and len(zxids) <= 1 else None


async def _witness(
    reader: Reader, operation: Create | Set | Delete, before: int
) -> _Witness | None:
    if isinstance(operation, Delete):
        gone = await reader.exists(operation.path) is None
        return _Witness(None, None) if gone else None
    if isinstance(operation, Create) and operation.sequence:
        return await _sequential(reader, operation, before)
    try:
        data, stat = await reader.get(operation.path)
    except NoNode:
        return None
    if data != operation.data or stat.mzxid <= before:
        return None
    if isinstance(operation, Create):
        created = stat.czxid > before and _is_owned(reader, operation, stat)
        return _Witness(operation.path, stat.czxid) if created else None
    if operation.version not in (ANY_VERSION, stat.version - 1):
        return None
    return _Witness(stat, stat.mzxid)


async def _sequential(reader: Reader, operation: Create, before: int) -> _Witness | None:
    """Find our node among the newest of its siblings."""
    parent = parent_of(operation.path)
    try:
        names = await reader.children(parent)
    except NoNode:
        return None
    root = "" if parent == "/" else parent
    siblings = [f"{root}/{name}" for name in names]
    ours = [path for path in siblings if path.startswith(operation.path)]
    for path in reversed(ours):
        try:
            data, stat = await reader.get(path)
        except NoNode:
            continue
        if stat.czxid <= before:
            return None
        if data == operation.data and _is_owned(reader, operation, stat):
            return _Witness(path, stat.czxid)
    return None


def _is_owned(reader: Reader, operation: Create, stat: Stat) -> bool:
    return stat.ephemeral_owner == (reader.session_id if operation.ephemeral else 0)
