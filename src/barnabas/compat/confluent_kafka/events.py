"""Callbacks of a client, queued until a thread of the program polls."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition

Event = Callable[[], object]


class Events:
    """A queue of calls: any thread adds one, the thread that polls runs them in order."""

    def __init__(self) -> None:
        self.changed = Condition()
        self._queue: deque[Event] = deque()
        self.notify: Callable[[], object] = _nobody
        """Called after each `add`, by the thread that added."""

    def add(self, event: Event) -> None:
        """Queue a call for the next poll."""
        with self.changed:
            self._queue.append(event)
            self.changed.notify_all()
        self.notify()

    def serve(self) -> int:
        """Run the queued calls, and return how many there were; a call may raise."""
        served = 0
        while True:
            with self.changed:
                if not self._queue:
                    return served
                event = self._queue.popleft()
            served += 1
            try:
                event()
            finally:
                with self.changed:  # another thread may wait for its effect
                    self.changed.notify_all()

    def wait(self, timeout_s: float | None, until: Callable[[], bool] = lambda: False) -> bool:
        """Wait until a call is queued, or a condition holds; return whether so.

        Other threads may serve events, too: the condition is checked after each.
        """
        with self.changed:
            return self.changed.wait_for(lambda: bool(self._queue) or until(), timeout_s)


def _nobody() -> None:
    """Do nothing: the program polls."""


def seconds(timeout: float | None) -> float | None:
    """Return a timeout as a wait takes it: None, which is forever, for a negative one."""
    return None if timeout is None or timeout < 0 else float(timeout)
