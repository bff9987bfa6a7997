"""Producer ids: handed out one by one from blocks that the controller reserves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class ProducerIds:
    """The block of ids that this broker holds."""

    def __init__(self, allocate: Callable[[], Awaitable[range]]) -> None:
        self._allocate = allocate
        self._block = range(0)
        self._lock = asyncio.Lock()

    async def next_id(self) -> int:
        """Return an id that nobody had before."""
        async with self._lock:
            if not self._block:
                self._block = await self._allocate()
            producer_id = self._block[0]
            self._block = self._block[1:]
            return producer_id
