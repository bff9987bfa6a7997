"""Leader election: one plain function per occasion.

Each takes the assigned replicas in order (the first is preferred), the current leadership and the
live brokers, and returns the new leader with the new ISR, or None if no replica can be elected.
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
    """Whether the leader was not in sync, so that records may be lost."""


Election: TypeAlias = Callable[[Sequence[int], Leadership, Collection[int]], Elected | None]


def elect_in_sync(
    replicas: Sequence[int], present: Leadership, alive: Collection[int]
) -> Elected | None:
    """Replace a failed leader with a live in-sync replica."""
    leader = _first(replicas, alive, present.isr)
    if leader is None:
        return None
    return Elected(leader, tuple(replica for replica in present.isr if replica in alive))


def elect_any(
    replicas: Sequence[int], present: Leadership, alive: Collection[int]
) -> Elected | None:
    """Elect an in-sync replica or, failing that, any live one: records may be lost."""
    clean = elect_in_sync(replicas, present, alive)
    if clean is not None:
        return clean
    leader = _first(replicas, alive, replicas)
    return None if leader is None else Elected(leader, (leader,), True)


def elect_target(target: Sequence[int]) -> Election:
    """Move the leadership to one of a reassignment's target replicas."""

    def elect(_: Sequence[int], present: Leadership, alive: Collection[int]) -> Elected | None:
        leader = _first(target, alive, present.isr)
        return None if leader is None else Elected(leader, present.isr)

    return elect


def elect_preferred(
    replicas: Sequence[int], present: Leadership, alive: Collection[int]
) -> Elected | None:
    """Move the leadership to the preferred replica, if it is live and in sync."""
    leader = _first(replicas[:1], alive, present.isr)
    return None if leader is None else Elected(leader, present.isr)


def elect_proven(unproven: Collection[int]) -> Election:
    """Limit the leader and the ISR to brokers that have not restarted since the last write.

    A restarted broker may have lost what it had not flushed. If no other is left, one of them leads
    in a new epoch, so that the lost records can be told from new ones.
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
    """Move the leadership away from brokers in controlled shutdown."""

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
