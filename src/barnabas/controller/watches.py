"""The watches of a term: a change in the tree becomes an event in the controller's queue.

Watches fire once, and are set by the read of what they watch, so no change in between is missed.
There is one watch per event: if another read sets it again before it has fired, it still fires once
per change.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from barnabas.coordination.contract import Event as TreeEvent
from barnabas.coordination.contract import Watch

Event: TypeAlias = Callable[[], Awaitable[None]]
"""An event, as the action that handles it."""


class Watches:
    """The watches of one term."""

    def __init__(self, post: Callable[[Event], None]) -> None:
        self._post = post
        self._watches: dict[Event, Watch] = {}

    def on(self, event: Event) -> Watch:
        """Return the watch for an event."""
        watch = self._watches.get(event)
        if watch is None:
            watch = self._watches[event] = lambda _: self._post(event)
        return watch

    def on_child(self, event: Callable[[str], Awaitable[None]]) -> Watch:
        """Return a watch for many nodes; its event gets the name of the one that changed."""

        def on_event(change: TreeEvent) -> None:
            name = change.path.rsplit("/", 1)[1]
            self._post(lambda: event(name))

        return on_event
