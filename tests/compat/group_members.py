"""Members of a consumer group, whatever client they are made of, and what must hold of them.

A `Ledger` is told of everything that members do: it knows who owns which partition, and notes it
when two own one at once, when a record is passed over, and when a committed offset goes back.
`drive` gives every member its turn until something holds. One thread drives all, so what the
ledger hears is in the order in which it happened. A member that has a thread of its own tells the
ledger of a thing before it does the next, which is order enough.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from tests.compat.samples import until_deadline

Place = tuple[str, int]
"""A topic and a partition number."""


class Member(Protocol):
    """Somebody in a group."""

    name: str

    def step(self) -> None:
        """Do a little, and come back soon."""


class Ledger:
    """What the members of one group did, and what they must not have done."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.owner: dict[Place, str] = {}
        self.complaints: list[str] = []
        self.processed: dict[Place, set[int]] = defaultdict(set)
        self.committed: dict[Place, int] = {}
        self.assignments: dict[str, int] = defaultdict(int)
        """How often each member was told of an assignment."""
        self.revocations: dict[str, list[Place]] = defaultdict(list)
        """What each member was asked to give back or lost, ever."""

    def assigned(self, member: str, places: Iterable[Place]) -> None:
        """A member may read some partitions from now on."""
        with self._lock:
            self.assignments[member] += 1
            for place in places:
                present = self.owner.get(place, member)
                if present != member:
                    self.complaints.append(f"{place} is {present}'s and was given to {member}")
                self.owner[place] = member

    def revoked(self, member: str, places: Iterable[Place]) -> None:
        """A member no longer reads some partitions."""
        with self._lock:
            for place in places:
                self.revocations[member].append(place)
                if self.owner.get(place) == member:
                    del self.owner[place]

    def vanished(self, member: str) -> None:
        """A member is gone, or does not notice that it is: the group may give away what it had."""
        with self._lock:
            self.revoked(member, self.of(member))

    def read(self, member: str, place: Place, offset: int) -> None:
        """A member got a record."""
        with self._lock:
            if self.owner.get(place) != member:
                self.complaints.append(f"{member} got {place} {offset} and does not own it")
            self.processed[place].add(offset)

    def has_committed(self, place: Place, offset: int) -> None:
        """A commit was acknowledged."""
        with self._lock:
            if offset < self.committed.get(place, 0):
                self.complaints.append(
                    f"{place} went back from {self.committed[place]} to {offset}"
                )
            self.committed[place] = offset

    def resumes(self, place: Place, offset: int) -> None:
        """A member begins to read a partition: not after what was committed, nor before."""
        with self._lock:
            if offset != self.committed.get(place, 0):
                expected = self.committed.get(place, 0)
                self.complaints.append(f"{place} begins at {offset}, committed is {expected}")

    def of(self, member: str) -> list[Place]:
        """Return what a member owns."""
        with self._lock:
            return sorted(place for place, owner in self.owner.items() if owner == member)

    def shares(self, members: Sequence[Member]) -> list[int]:
        """Return how many partitions each member owns, the smallest share first."""
        return sorted(len(self.of(member.name)) for member in members)

    def has_read(self, places: Iterable[Place], count: int) -> bool:
        """Tell whether the first `count` records of every partition were processed."""
        return all(len(self.processed[place]) >= count for place in places)

    def check(self) -> None:
        """Hold that nothing forbidden happened."""
        assert self.complaints == []


def drive(
    members: Sequence[Member], until: Callable[[], object], what: str, seconds: float = 60
) -> None:
    """Let members act in turn until something holds."""
    for _ in until_deadline(what, seconds):
        for member in members:
            member.step()
        if until():
            return
