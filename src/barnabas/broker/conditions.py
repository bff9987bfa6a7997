"""Waiting for something to hold, which only certain events can change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Conditions:
    """Whoever waits; `look` is called after each event that may have changed something."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self._ended = False

    async def until(self, holds: Callable[[], bool], timeout_ms: float) -> bool:
        """Wait until something holds, or time is up; tell whether it does."""
        if self._ended or holds():
            return holds()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.watch(holds, waiter)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await waiter
        except TimeoutError:
            return holds()
        return not self._ended or holds()

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

    def end(self) -> None:
        """Nothing more will happen: who waits, now or later, is told what holds by then."""
        self._ended = True
        for _, waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()
