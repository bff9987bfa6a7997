"""The list of watches: what an event fires, and what was missed while nobody listened."""

from __future__ import annotations

import pytest

from barnabas.coordination.contract import Event, EventType
from barnabas.coordination.zookeeper.watches import Kind, Mark, Watches


def hear(event: Event) -> None:
    """A watch."""


def listen(event: Event) -> None:
    """Another watch."""


def test_an_event_takes_its_watches_once() -> None:
    """A change of data concerns the node's watches, a deletion both kinds, each once."""
    watches = Watches()
    watches.add(Kind.NODE, "/a", hear, Mark(1, 1))
    watches.add(Kind.NODE, "/a", listen, Mark(1, 1))
    watches.add(Kind.NODE, "/a", hear, Mark(1, 1))
    watches.add(Kind.CHILDREN, "/a", hear, Mark(1, 1))
    assert watches.take(Event(EventType.CHILDREN, "/b")) == []
    assert watches.take(Event(EventType.DELETED, "/a")) == [hear, listen]
    assert watches.take(Event(EventType.DELETED, "/a")) == []
    watches.add(Kind.NODE, "/a", hear, None)
    watches.add(Kind.CHILDREN, "/a", listen, Mark(1, 1))
    assert watches.take(Event(EventType.CREATED, "/a")) == [hear]
    assert list(watches) == [(Kind.CHILDREN, "/a")]
    watches.clear()
    assert len(watches) == 0


@pytest.mark.parametrize(
    ("kind", "seen", "now", "missed"),
    [
        (Kind.NODE, Mark(1, 5), Mark(1, 5), None),
        (Kind.NODE, Mark(1, 5), Mark(1, 6), EventType.CHANGED),
        (Kind.NODE, Mark(1, 5), None, EventType.DELETED),
        (Kind.NODE, Mark(1, 5), Mark(7, 7), EventType.DELETED),
        (Kind.NODE, None, Mark(7, 7), EventType.CREATED),
        (Kind.NODE, None, None, None),
        (Kind.CHILDREN, Mark(1, 5), Mark(1, 6), EventType.CHILDREN),
        (Kind.CHILDREN, Mark(1, 5), None, EventType.DELETED),
        (Kind.CHILDREN, Mark(1, 5), Mark(8, 9), EventType.DELETED),
    ],
)
def test_what_was_missed(
    kind: Kind, seen: Mark | None, now: Mark | None, missed: EventType | None
) -> None:
    """The event is the first that would have come."""
    watches = Watches()
    watches.add(kind, "/a", hear, seen)
    assert watches.missed(kind, "/a", now) == (None if missed is None else Event(missed, "/a"))
    assert watches.missed(kind, "/other", now) is None
