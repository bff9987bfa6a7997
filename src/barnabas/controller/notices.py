"""Notifications that brokers leave for the controller below a node: failed disks, ISR changes.

A notification is removed once it has been acted upon. Those from before a failover tell the new
controller nothing that it does not find out by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from barnabas.controller.guarded_tree import GuardedTree
from barnabas.coordination.contract import Delete, Watch
from barnabas.model.errors import CorruptFileError

logger = logging.getLogger("barnabas.controller")

Notice = TypeVar("Notice")


class Notices(Generic[Notice]):
    """The notifications of one kind."""

    def __init__(
        self, tree: GuardedTree, parent: str, decode: Callable[[str, bytes], Notice], more: Watch
    ) -> None:
        """Read below `parent`; `more` is the watch for later notifications."""
        self._tree = tree
        self._parent = parent
        self._decode = decode
        self._more = more
        self._read: list[str] = []

    async def read(self) -> list[Notice]:
        """Return the notifications; unreadable ones are skipped."""
        names = await self._tree.tree.children(self._parent, self._more)
        self._read = [f"{self._parent}/{name}" for name in names]
        notices: list[Notice] = []
        found = await self._tree.tree.get_many(self._read)
        for path, got in zip(self._read, found, strict=True):
            try:
                if got is not None:
                    notices.append(self._decode(path, got[0]))
            except CorruptFileError as failure:
                logger.error("notification skipped, unreadable: %s", failure)
        return notices

    async def remove(self) -> None:
        """Remove the notifications that were read."""
        await self._tree.write_each([(Delete(path),) for path in self._read])

    async def clear(self) -> None:
        """Remove all notifications, unread."""
        names = await self._tree.tree.children(self._parent)
        await self._tree.write_each([(Delete(f"{self._parent}/{name}"),) for name in names])
