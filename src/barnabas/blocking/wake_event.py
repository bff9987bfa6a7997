"""An event that one thread waits for, and that any thread or signal handler may set.

`threading.Event` will not do: a signal handler that sets one while its own thread is inside the
event's methods waits for itself forever. A bare lock has no such critical section.
"""

from __future__ import annotations

import threading
from contextlib import suppress


class WakeEvent:
    """Set or not; a wait ends with the event and clears it."""

    def __init__(self) -> None:
        self._unset = threading.Lock()  # held as long as the event is not set
        self._unset.acquire()

    def set(self) -> None:
        """Wake the thread that waits, or that waits next."""
        with suppress(RuntimeError):  # it was set already
            self._unset.release()

    def clear(self) -> None:
        """Clear the event."""
        self._unset.acquire(blocking=False)

    def wait(self, timeout_s: float) -> bool:
        """Wait until it is set and clear it; return whether it was set in time."""
        return self._unset.acquire(timeout=timeout_s)
