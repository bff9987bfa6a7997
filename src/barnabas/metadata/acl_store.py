"""ACLs in the coordination tree: read, and changed on condition that nobody else did meanwhile.

Any broker may write. A change is one transaction: the node of the pattern, at the version that was
read, and a notice for every broker. Who is overtaken reads again and retries after a moment.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from barnabas.coordination.contract import (
    BadVersion,
    Coordination,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Operation,
    Set,
)
from barnabas.metadata import acl_nodes as nodes
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptFileError, RequestError
from barnabas.security.acl.binding import Binding, Entry, Pattern, PatternType
from barnabas.security.authorizer import ResourceType

logger = logging.getLogger("barnabas.authorizer")

ATTEMPTS_MAX = 10
RETRY_MS = 100
RETRY_MS_JITTER = 50

Change = Callable[[frozenset[Entry]], Iterable[Entry]]
"""Returns the new ACLs of a pattern for the ones that it has."""


class AclStore:
    """Reads and writes the ACLs of a cluster."""

    def __init__(
        self,
        tree: Coordination,
        jitter: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Retry after pauses that `jitter`, a number from 0 to 1, makes differ among brokers."""
        self._tree = tree
        self._sleep = sleep
        self._jitter = jitter

    async def create_paths(self) -> None:
        """Create the parents of all ACLs and notices, as the first broker with ACLs does."""
        paths = [
            nodes.types_path(pattern_type, resource_type)
            for pattern_type in PatternType
            for resource_type in ResourceType
        ]
        for path in [*nodes.CHANGES.values(), *paths]:
            try:
                await self._tree.create(path, make_parents=True)
            except NodeExists:
                continue

    async def load(self) -> list[Binding]:
        """Read all ACLs; unreadable nodes are logged and skipped."""
        patterns = [
            Pattern(resource_type, name, pattern_type)
            for pattern_type in PatternType
            for resource_type in ResourceType
            for name in await self._tree.children(nodes.types_path(pattern_type, resource_type))
        ]
        paths = [nodes.acl_path(pattern) for pattern in patterns]
        bindings: list[Binding] = []
        for pattern, path, found in zip(
            patterns, paths, await self._tree.get_many(paths), strict=True
        ):
            if found is None:
                continue  # deleted meanwhile; a notice says so
            try:
                entries = nodes.decode_entries(path, found[0])
            except CorruptFileError as failure:
                logger.error("ACLs of %s are unreadable and have no effect: %s", pattern, failure)
                continue
            bindings += [Binding(pattern, entry) for entry in sorted(entries)]
        return bindings

    async def get(self, pattern: Pattern) -> frozenset[Entry]:
        """Read the ACLs of one pattern; none if it has no node."""
        entries, _ = await self._read(pattern)
        return entries

    async def update(self, pattern: Pattern, change: Change) -> frozenset[Entry]:
        """Change the ACLs of one pattern, notify all brokers, and return the new ones."""
        path = nodes.acl_path(pattern)
        notice = Create(
            nodes.notice_path(pattern.pattern_type), nodes.encode_notice(pattern), sequence=True
        )
        for attempt in range(ATTEMPTS_MAX):
            if attempt:
                await self._sleep((RETRY_MS + self._jitter() * RETRY_MS_JITTER) / 1000)
            old, version = await self._read(pattern)
            new = frozenset(change(old))
            if new == old:
                return new
            operation: Operation
            if version is None:
                operation = Create(path, nodes.encode_entries(new))
            elif new:
                operation = Set(path, nodes.encode_entries(new), version)
            else:
                operation = Delete(path, version)
            try:
                await self._tree.multi([operation, notice])
            except (BadVersion, NodeExists, NoNode) as overtaken:
                if overtaken.path != path:
                    raise
            else:
                return new
        raise RequestError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"ACLs of {pattern} changed {ATTEMPTS_MAX} times at once; try again",
        )

    async def _read(self, pattern: Pattern) -> tuple[frozenset[Entry], int | None]:
        """Return the ACLs of a pattern and the version of its node, None if there is none."""
        path = nodes.acl_path(pattern)
        try:
            data, stat = await self._tree.get(path)
        except NoNode:
            return frozenset(), None
        return nodes.decode_entries(path, data), stat.version
