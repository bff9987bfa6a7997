"""How a member of a consumer group moves from its current to its target assignment (KIP-848).

    STABLE ──target changed, must give something up──▶ UNREVOKED ──given back──┐
      │ ▲                                                                      │
      │ └──────everything it should have is free and now its own───────────────┤
      └──target changed, others still hold parts──▶ UNRELEASED ◀───────────────┘

A member acknowledges by no longer reporting a partition as owned. Only then is the partition free
for another member: it never has two owners.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from barnabas.model.ids import Uuid


class IdPartition(NamedTuple):
    """A partition of a topic that is named by its id."""

    topic_id: Uuid
    partition: int


Partitions: TypeAlias = frozenset[IdPartition]

NONE: Final[Partitions] = frozenset()


class MemberState(IntEnum):
    """The state of a member; the numbers are those of its record."""

    STABLE = 1
    UNREVOKED = 2
    UNRELEASED = 3


@dataclass(frozen=True, slots=True)
class Current:
    """A member's current assignment."""

    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Partitions = NONE
    revoking: Partitions = NONE
    """What it was told to revoke and has not revoked yet."""

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Return whether the member has its target assignment of an epoch."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch


NOTHING: Final = Current()
"""The assignment of a new member."""


def reconcile(
    current: Current,
    target: Partitions,
    target_epoch: int,
    owned: Partitions | None,
    is_free: Callable[[IdPartition], bool],
) -> Current:
    """Take the next step towards the target, if the member and the others allow one.

    `owned` is what the member reports, None if it reports nothing; `is_free` returns whether no
    other member holds a partition.
    """
    if current.state is MemberState.UNREVOKED:
        if owned is None or owned & current.revoking:
            return current
        return _next(current, current.epoch + 1, target, target_epoch, owned, is_free)
    if current.is_reconciled_to(target_epoch):
        return current
    return _next(current, current.epoch, target, target_epoch, owned, is_free)


def _next(
    current: Current,
    epoch: int,
    target: Partitions,
    target_epoch: int,
    owned: Partitions | None,
    is_free: Callable[[IdPartition], bool],
) -> Current:
    kept = current.assigned & target
    revoking = current.assigned - target
    if revoking and (owned is None or owned & revoking):
        return _moved(current, epoch, MemberState.UNREVOKED, kept, revoking)
    wanted = target - kept
    available = frozenset(partition for partition in wanted if is_free(partition))
    state = MemberState.STABLE if available == wanted else MemberState.UNRELEASED
    return _moved(current, target_epoch, state, kept | available, NONE)


def _moved(
    current: Current, epoch: int, state: MemberState, assigned: Partitions, revoking: Partitions
) -> Current:
    moved = replace(current, epoch=epoch, state=state, assigned=assigned, revoking=revoking)
    if epoch == current.epoch:
        return moved
    return replace(moved, previous_epoch=current.epoch)
