"""A bell that one thread waits for, and that any thread or signal handler may ring.

`threading.Event` will not do: a signal handler that sets one while its own thread is inside the
event's methods waits for itself forever. A bare lock has no such critical section.
"""

from __future__ import annotations

import threading
from contextlib import suppress


class Bell:
    """Rung or not; waiting hears the last ring, however many there were."""

    def __init__(self) -> None:
        self._silence = threading.Lock()  # held as long as nobody has rung
        self._silence.acquire()

    def ring(self) -> None:
        """Wake who waits, or who waits next."""
        with suppress(RuntimeError):  # it was rung already
            self._silence.release()

    def clear(self) -> None:
        """Forget that it was rung."""
        self._silence.acquire(blocking=False)

    def wait(self, timeout_s: float) -> bool:
        """Wait for a ring and forget it; return whether it came in time."""
        return self._silence.acquire(timeout=timeout_s)
