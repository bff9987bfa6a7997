"""Waiting for something to hold, which only certain events can change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Conditions:
    """Whoever waits; `look` is called after each event that may have changed something."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    async def until(self, holds: Callable[[], bool], timeout_ms: float) -> bool:
        """Wait until something holds, or time is up; tell whether it does."""
        if holds():
            return True
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.watch(holds, waiter)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await waiter
        except TimeoutError:
            return holds()
        return True

    def watch(self, holds: Callable[[], bool], waiter: asyncio.Future[None]) -> None:
        """Have a future set once something holds; one that is done by then is left alone."""
        self._waiting.append((holds, waiter))

    def look(self) -> None:
        """Wake those for whom it is time."""
        still = []
        for holds, waiter in self._waiting:
            if waiter.done():
                continue
            if holds():
                waiter.set_result(None)
            else:
                still.append((holds, waiter))
        self._waiting = still
