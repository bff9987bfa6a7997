"""Keeps a client's metadata up to date, in the background.

Metadata is refreshed when it is older than `age_ms_max`, and soon after `request`: requests during
a refresh or a pending one are merged, and attempts are spaced, also successful ones, so that a
topic without leaders does not cause a stream of Metadata requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from barnabas.client.retry import Backoff
from barnabas.model.errors import BarnabasError


class MetadataRefresh:
    """Calls `refresh` when it is due, from `start` to `stop`."""

    def __init__(
        self, refresh: Callable[[], Awaitable[object]], pauses: Backoff, age_ms_max: float
    ) -> None:
        self.failure: BarnabasError | None = None
        """Why the last refresh failed, if it did."""
        self._refresh = refresh
        self._pauses = pauses
        self._age_ms_max = age_ms_max
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Return whether it was started and not stopped."""
        return self._task is not None

    def request(self) -> None:
        """Request a refresh soon."""
        self._wanted.set()

    def start(self) -> None:
        """Start; the first refresh is done when it is requested or the age is reached."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        attempts = 0
        while True:
            requested = await self._wait()
            self._wanted.clear()
            try:
                await self._refresh()
                self.failure = None
            except BarnabasError as failure:
                self.failure = failure
                self._wanted.set()
            # Requested repeatedly, or failing: ever longer pauses. By age alone: none.
            attempts = attempts + 1 if requested and self._wanted.is_set() else 1
            await asyncio.sleep(self._pauses.delay_ms(attempts) / 1000)

    async def _wait(self) -> bool:
        """Wait for a request or the age; return whether it was a request."""
        try:
            async with asyncio.timeout(self._age_ms_max / 1000):
                await self._wanted.wait()
        except TimeoutError:
            return False
        return True
