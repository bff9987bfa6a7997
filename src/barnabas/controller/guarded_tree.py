"""The coordination tree as only the present controller can write it.

Every write carries a check of `/controller_epoch`'s version: an older controller that has not
noticed its successor cannot change a thing, and learns of it by `ControllerMoved`.
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
        except CoordinationError as failure:
            self._check_office(failure)
            raise

    async def write_each(self, changes: Sequence[Change]) -> list[Outcome]:
        """Do changes that do not depend on each other; return for each its results, or why not.

        They travel together, and nobody waits for the answer to another. Where one of them fails,
        those that travelled with it are done again, each for itself.
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
        """Do each batch whole or not; return its results, or what speaks against it."""
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
    """Gather as many changes as one message may carry."""
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
    """Give each change of a batch its own results."""
    shares: list[Outcome] = []
    position = 0
    for change in batch:
        shares.append(list(results[position : position + len(change)]))
        position += len(change)
    return shares
