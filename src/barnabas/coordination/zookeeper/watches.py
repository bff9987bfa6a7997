"""The watches of a ZooKeeper session: who watches what, and what each had seen.

kazoo drops watches when the connection is lost, and so does the server. For each watched thing this
list keeps a *mark* (transaction ids of what was last read); after a reconnect the thing is read
again, and a different mark fires the watches as the event would have. A plain object: it neither
reads nor waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from barnabas.coordination.contract import Event, EventType, Watch


class Kind(Enum):
    """The part of a node that is watched."""

    NODE = "node"
    CHILDREN = "children"


class Mark(NamedTuple):
    """What a reader saw: when the node was created and when the watched part last changed."""

    created: int
    changed: int


_FIRED_BY = {
    EventType.CREATED: (Kind.NODE,),
    EventType.CHANGED: (Kind.NODE,),
    EventType.CHILDREN: (Kind.CHILDREN,),
    EventType.DELETED: (Kind.NODE, Kind.CHILDREN),
}


class _Watched:
    __slots__ = ("mark", "watches")

    def __init__(self) -> None:
        self.mark: Mark | None = None
        # An ordered set: a watch set twice is kept once.
        self.watches: dict[Watch, None] = {}


class Watches:
    """Watches by what they watch."""

    def __init__(self) -> None:
        self._watched: dict[tuple[Kind, str], _Watched] = {}

    def __len__(self) -> int:
        return len(self._watched)

    def __iter__(self) -> Iterator[tuple[Kind, str]]:
        return iter(list(self._watched))

    def add(self, kind: Kind, path: str, watch: Watch, mark: Mark | None) -> None:
        """Set a watch for a reader who saw `mark` (None: no node)."""
        watched = self._watched.setdefault((kind, path), _Watched())
        watched.mark = mark
        watched.watches[watch] = None

    def clear(self) -> None:
        """Drop all watches: the session has ended."""
        self._watched.clear()

    def take(self, event: Event) -> list[Watch]:
        """Remove and return the watches that an event fires, each once."""
        taken: dict[Watch, None] = {}
        for kind in _FIRED_BY[event.type]:
            watched = self._watched.pop((kind, event.path), None)
            if watched is not None:
                taken |= watched.watches
        return list(taken)

    def missed(self, kind: Kind, path: str, now: Mark | None) -> Event | None:
        """Return the event that was missed if the node `now` differs from what watchers saw."""
        watched = self._watched.get((kind, path))
        if watched is None or watched.mark == now:
            return None
        seen = watched.mark
        if seen is None:
            return Event(EventType.CREATED, path)
        if now is None or now.created != seen.created:
            return Event(EventType.DELETED, path)
        return Event(EventType.CHANGED if kind is Kind.NODE else EventType.CHILDREN, path)
