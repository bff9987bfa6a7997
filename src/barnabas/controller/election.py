"""Who shall lead: one plain function per occasion.

Each takes the assigned replicas in their order (the first one is preferred), the present
leadership and who is alive, and returns the new leader with the new in-sync replicas, or None
when there is nobody to elect.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeAlias

from barnabas.controller.leadership import Leadership


class Elected(NamedTuple):
    """The outcome of an election."""

    leader: int
    isr: tuple[int, ...]
    recovering: bool | None = None
    """True when the leader was not in sync, so that records may be missing."""


Election: TypeAlias = Callable[[Sequence[int], Leadership, Collection[int]], Elected | None]


def elect_in_sync(
    replicas: Sequence[int], present: Leadership, alive: Collection[int]
) -> Elected | None:
    """Replace a leader that is gone by a live replica that has all that was promised."""
    leader = _first(replicas, alive, present.isr)
    if leader is None:
        return None
    return Elected(leader, tuple(replica for replica in present.isr if replica in alive))


def elect_any(
    replicas: Sequence[int], present: Leadership, alive: Collection[int]
) -> Elected | None:
    """Replace a leader by one in sync or, if there is none, by whoever lives: records may go."""
    clean = elect_in_sync(replicas, present, alive)
    if clean is not None:
        return clean
    leader = _first(replicas, alive, replicas)
    return None if leader is None else Elected(leader, (leader,), True)


def elect_target(target: Sequence[int]) -> Election:
    """Move the leadership to one of the replicas that a reassignment leads to."""

    def elect(_: Sequence[int], present: Leadership, alive: Collection[int]) -> Elected | None:
        leader = _first(target, alive, present.isr)
        return None if leader is None else Elected(leader, present.isr)

    return elect


def elect_preferred(
    replicas: Sequence[int], present: Leadership, alive: Collection[int]
) -> Elected | None:
    """Give the leadership back to the first replica, if it lives and is in sync."""
    leader = _first(replicas[:1], alive, present.isr)
    return None if leader is None else Elected(leader, present.isr)


def elect_proven(unproven: Collection[int]) -> Election:
    """Let those lead and be in sync who have lived on since that was last written.

    Whoever began a new life meanwhile may have lost what it had not flushed. Where nobody else is
    left, one of them leads in a new epoch, so that what was lost can be told apart.
    """

    def elect(
        replicas: Sequence[int], present: Leadership, alive: Collection[int]
    ) -> Elected | None:
        here = tuple(replica for replica in present.isr if replica in alive)
        isr = tuple(replica for replica in here if replica not in unproven) or here
        if present.leader in isr:
            return Elected(present.leader, isr)
        leader = _first(replicas, alive, isr)
        return None if leader is None else Elected(leader, isr)

    return elect


def elect_without(leaving: Collection[int]) -> Election:
    """Take the leadership from brokers that shut down in an orderly way."""

    def elect(
        replicas: Sequence[int], present: Leadership, alive: Collection[int]
    ) -> Elected | None:
        staying = [replica for replica in replicas if replica not in leaving]
        leader = _first(staying, alive, present.isr)
        if leader is None:
            return None
        return Elected(leader, tuple(r for r in present.isr if r not in leaving))

    return elect


def _first(candidates: Sequence[int], alive: Collection[int], among: Collection[int]) -> int | None:
    return next((each for each in candidates if each in alive and each in among), None)
