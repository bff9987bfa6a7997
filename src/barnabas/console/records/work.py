"""Room for the work of searches: a thread of low priority for all, and a share for each user."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Final

PER_USER: Final = 2
NICENESS: Final = 10


class BusyError(Exception):
    """A user whose searches already use all that one may have."""


class Work:
    """Counts the searches of each user, and has the thread that they run on."""

    def __init__(self, per_user: int = PER_USER, waiting_max: int = 8) -> None:
        self.executor = ThreadPoolExecutor(1, "barnabas-search", initializer=_lower_priority)
        self._per_user = per_user
        self._waiting_max = waiting_max
        self._rooms: dict[str, tuple[asyncio.Semaphore, list[int]]] = {}

    @asynccontextmanager
    async def turn(self, principal: str) -> AsyncIterator[None]:
        """Wait for one of the user's turns; raise BusyError if too many wait already."""
        room, waiting = self._rooms.setdefault(principal, (asyncio.Semaphore(self._per_user), [0]))
        if waiting[0] >= self._waiting_max:
            raise BusyError(
                f"{self._waiting_max} of your searches run or wait already: try again soon"
            )
        waiting[0] += 1
        try:
            async with room:
                yield
        finally:
            waiting[0] -= 1
            if not waiting[0]:
                self._rooms.pop(principal, None)


def _lower_priority() -> None:
    # Only Linux has priorities per thread; on other systems the loop's would be lowered too.
    if sys.platform == "linux":
        thread_id = threading.get_native_id()
        niceness = os.getpriority(os.PRIO_PROCESS, thread_id) + NICENESS
        os.setpriority(os.PRIO_PROCESS, thread_id, min(niceness, 19))
