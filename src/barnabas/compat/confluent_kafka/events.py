"""What a client has to tell its program: calls that are made in the thread that polls."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition

Event = Callable[[], object]


class Events:
    """Calls to make, in order; any thread adds, the thread that polls makes them."""

    def __init__(self) -> None:
        self.changed = Condition()
        self._queue: deque[Event] = deque()
        self.notify: Callable[[], object] = _nobody
        """Called after an event was added, by the thread that added it."""

    def add(self, event: Event) -> None:
        """Have something called by the next poll."""
        with self.changed:
            self._queue.append(event)
            self.changed.notify_all()
        self.notify()

    def serve(self) -> int:
        """Make the calls that wait, and return how many there were; a call may raise."""
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
                with self.changed:  # another thread may wait for what the call has changed
                    self.changed.notify_all()

    def wait(self, timeout_s: float | None, until: Callable[[], bool] = lambda: False) -> bool:
        """Wait until there is something to call, or a condition holds; return whether so.

        Other threads may serve events, too: the condition is looked at after each.
        """
        with self.changed:
            return self.changed.wait_for(lambda: bool(self._queue) or until(), timeout_s)


def _nobody() -> None:
    """Do nothing: the program polls."""


def seconds(timeout: float | None) -> float | None:
    """Return a timeout as a wait takes it: None, which is forever, for a negative one."""
    return None if timeout is None or timeout < 0 else float(timeout)
