"""Members of a consumer group, whatever client they are made of, and what must hold of them.

A `Ledger` is told of everything that members do: it knows who owns which partition, and notes it
when two own one at once, when a record is passed over, and when a committed offset goes back.
`drive` gives every member its turn until something holds. Members of other libraries act in a
thread of their own (`Life`): a join of theirs may wait for another member, and so may what waits
behind the join on its connection (a commit, a farewell), so a thread that has several of them in
its hands can lock itself up. Each tells the ledger of a thing before it does the next, which is
order enough.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from tests.compat.samples import until_deadline

Place = tuple[str, int]
"""A topic and a partition number."""

SESSION_TIMEOUT_MS = 15_000
"""For members that are not to be given up, however long the machine is busy with something else."""


class Member(Protocol):
    """Somebody in a group."""

    name: str

    def step(self) -> None:
        """Do a little, and come back soon."""

    def leave(self, others: Sequence[Member]) -> None:
        """Go, while the others are driven on."""


class Life:
    """A thread in which a member takes turns until it is told to end, and then departs.

    Whatever fails in it is raised by `check`.
    """

    def __init__(self, name: str, turn: Callable[[], None], depart: Callable[[], None]) -> None:
        self._turn = turn
        self._depart = depart
        self._ending = threading.Event()
        self._pausing = False
        self.is_paused = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def begin(self) -> None:
        """Take the first turn; the member must be complete by now."""
        self._thread.start()

    def check(self) -> None:
        """Raise what has failed, and leave the thread some time."""
        if self._failure is not None:
            raise self._failure
        self._ending.wait(0.001)

    def pause(self) -> None:
        """Take no turn after the one under way; `is_paused` tells when that is over."""
        self._pausing = True

    def resume(self) -> None:
        """Take turns again."""
        self._pausing = False

    def end(self) -> None:
        """Let the turn under way be the last."""
        self._ending.set()

    def has_ended(self) -> bool:
        """Tell whether the member has departed; raise what failed in its life."""
        self._thread.join(0.005)
        if self._thread.is_alive():
            return False
        self.check()
        return True

    def _run(self) -> None:
        try:
            try:
                while not self._ending.is_set():
                    self.is_paused = self._pausing
                    if self.is_paused:
                        self._ending.wait(0.005)
                    else:
                        self._turn()
            finally:
                self._depart()
        except BaseException as failure:  # noqa: BLE001 - whoever looks at the member raises it
            self._failure = failure


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
        with self._lock:
            return sorted(len(self.of(member.name)) for member in members)

    def has_read(self, places: Iterable[Place], count: int) -> bool:
        """Tell whether the first `count` records of every partition were processed."""
        return all(len(self.processed[place]) >= count for place in places)

    def check(self) -> None:
        """Hold that nothing forbidden happened."""
        assert not self.complaints, "\n".join(self.complaints)


def drive(
    members: Sequence[Member], until: Callable[[], object], what: str, seconds: float = 60
) -> None:
    """Let members act in turn until something holds."""
    for _ in until_deadline(what, seconds):
        for member in members:
            member.step()
        if until():
            return
