"""One thread at a time, in the order in which they came."""

from __future__ import annotations

from threading import Lock, RLock, get_ident


class Turns:
    """A lock that a thread may take again, and that others get as soon as it is released.

    Python's own locks let a thread that polls in a loop take them again while others wait.
    """

    def __init__(self) -> None:
        self._gate = Lock()
        self._lock = RLock()
        self._owner: int | None = None
        self._depth = 0

    def __enter__(self) -> None:
        me = get_ident()
        if self._owner == me:
            self._lock.acquire()
        else:
            with self._gate:  # the next one holds it while it waits, and the others wait for it
                self._lock.acquire()
            self._owner = me
        self._depth += 1

    def __exit__(self, *about: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = None
        self._lock.release()
