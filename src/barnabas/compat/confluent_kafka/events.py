"""What a client has to tell its program: calls that are made in the thread that polls."""

from __future__ import annotations

import time
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
            event()

    def wait(self, timeout_s: float | None) -> bool:
        """Wait until there is something to call; return whether there is."""
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        with self.changed:
            while not self._queue:
                left_s = None if deadline_s is None else deadline_s - time.monotonic()
                if left_s is not None and left_s <= 0:
                    return False
                self.changed.wait(left_s)
            return True


def _nobody() -> None:
    """Do nothing: the program polls."""


def seconds(timeout: float | None) -> float | None:
    """Return a timeout as a wait takes it: None, which is forever, for a negative one."""
    return None if timeout is None or timeout < 0 else float(timeout)
