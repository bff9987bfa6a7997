"""The coordination tree as only the present controller can write it.

Every write carries a check of `/controller_epoch`'s version: an older controller that has not
noticed its successor cannot change a thing, and learns of it by `ControllerMoved`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from barnabas.controller import nodes
from barnabas.coordination.contract import (
    BadVersion,
    Check,
    Coordination,
    CoordinationError,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    Result,
)
from barnabas.model.errors import BarnabasError

OPERATIONS_PER_MULTI = 500
"""A multi travels in one message, which a ZooKeeper server bounds at a mebibyte."""

Change: TypeAlias = Sequence[Operation]
"""Operations that take effect together."""

Outcome: TypeAlias = "list[Result] | CoordinationError"


class ControllerMoved(BarnabasError):
    """Another broker has become the controller: this one must decide nothing more."""


class GuardedTree:
    """Writes of one controller's term."""

    def __init__(self, tree: Coordination, epoch_version: int) -> None:
        self.tree = tree
        self._guard = Check(nodes.CONTROLLER_EPOCH, epoch_version)

    async def write(self, change: Change) -> list[Result]:
        """Do one change whole; raise what speaks against it, or ControllerMoved."""
        try:
            return (await self.tree.multi([self._guard, *change]))[1:]
        except (BadVersion, NoNode) as failure:
            if failure.path == nodes.CONTROLLER_EPOCH:
                raise ControllerMoved("another broker is the controller now") from failure
            raise

    async def write_each(self, changes: Sequence[Change]) -> list[Outcome]:
        """Do changes that do not depend on each other; return for each its results, or why not.

        They travel together. Where one of them fails, they are done again one by one.
        """
        outcomes: list[Outcome] = []
        batch: list[Change] = []
        size = 0
        for change in changes:
            if batch and size + len(change) > OPERATIONS_PER_MULTI:
                outcomes += await self._write_batch(batch)
                batch, size = [], 0
            batch.append(change)
            size += len(change)
        if batch:
            outcomes += await self._write_batch(batch)
        return outcomes

    async def _write_batch(self, batch: Sequence[Change]) -> list[Outcome]:
        try:
            results = await self.write([operation for change in batch for operation in change])
        except (BadVersion, NodeExists, NoNode, NotEmpty) as failure:
            if len(batch) == 1:
                return [failure]
            return [outcome for change in batch for outcome in await self._write_batch([change])]
        outcomes: list[Outcome] = []
        position = 0
        for change in batch:
            outcomes.append(results[position : position + len(change)])
            position += len(change)
        return outcomes
