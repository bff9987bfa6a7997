"""The coordination tree as only the present controller can write it.

Every write carries a check of `/controller_epoch`'s version: a deposed controller that has not
noticed its successor cannot change anything, and gets `ControllerMoved`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

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
from barnabas.metadata import tree_schema as nodes
from barnabas.model.errors import BarnabasError

OPERATIONS_PER_MULTI = 500
"""A multi is one message, which a ZooKeeper server limits to a mebibyte."""

Change: TypeAlias = Sequence[Operation]
"""Operations that take effect together."""

Outcome: TypeAlias = "list[Result] | CoordinationError"


class ControllerMoved(BarnabasError):
    """Another broker has become the controller: this one must stop deciding."""


class GuardedTree:
    """Writes of one controller's term."""

    def __init__(self, tree: Coordination, epoch_version: int) -> None:
        self.tree = tree
        self._guard = Check(nodes.CONTROLLER_EPOCH, epoch_version)

    async def write(self, change: Change) -> list[Result]:
        """Apply one change atomically; raise why it failed, or ControllerMoved."""
        try:
            return (await self.tree.multi([self._guard, *change]))[1:]
        except CoordinationError as failure:
            self._check_office(failure)
            raise

    async def write_each(self, changes: Sequence[Change]) -> list[Outcome]:
        """Apply independent changes; return for each its results, or why it failed.

        They are batched, and batches are pipelined. If a change fails, the others of its batch are
        retried one by one.
        """
        outcomes: list[Outcome] = []
        batches = _batches(changes)
        for batch, outcome in zip(batches, await self._write_batches(batches), strict=True):
            if not isinstance(outcome, CoordinationError):
                outcomes += _shares(batch, outcome)
            elif len(batch) == 1:
                outcomes.append(outcome)
            else:
                outcomes += await self._write_batches([[change] for change in batch])
        return outcomes

    async def _write_batches(self, batches: Sequence[Sequence[Change]]) -> list[Outcome]:
        """Apply each batch atomically; return its results, or why it failed."""
        answers = await self.tree.multi_each(
            [[self._guard, *(each for change in batch for each in change)] for batch in batches]
        )
        outcomes: list[Outcome] = []
        for answer in answers:
            if isinstance(answer, list):
                outcomes.append(answer[1:])
                continue
            self._check_office(answer)
            if not isinstance(answer, BadVersion | NodeExists | NoNode | NotEmpty):
                raise answer
            outcomes.append(answer)
        return outcomes

    def _check_office(self, failure: CoordinationError) -> None:
        if failure.path == nodes.CONTROLLER_EPOCH and isinstance(failure, BadVersion | NoNode):
            raise ControllerMoved("another broker is the controller now") from failure


def _batches(changes: Sequence[Change]) -> list[list[Change]]:
    """Batch as many changes as fit into one message."""
    batches: list[list[Change]] = []
    size = OPERATIONS_PER_MULTI
    for change in changes:
        if size + len(change) > OPERATIONS_PER_MULTI:
            batches.append([])
            size = 0
        batches[-1].append(change)
        size += len(change)
    return batches


def _shares(batch: Sequence[Change], results: Sequence[Result]) -> list[Outcome]:
    """Split a batch's results by change."""
    shares: list[Outcome] = []
    position = 0
    for change in batch:
        shares.append(list(results[position : position + len(change)]))
        position += len(change)
    return shares
