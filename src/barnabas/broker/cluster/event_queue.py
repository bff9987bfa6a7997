"""The queue of a controller's events; how long each waits is recorded."""

from __future__ import annotations

import asyncio

from barnabas.controller.watches import Event
from barnabas.metrics.instruments import Histogram


class EventQueue:
    """Events in the order in which they were posted."""

    def __init__(self, waits: Histogram) -> None:
        """Record waits in microseconds."""
        self._waits = waits
        self._events: asyncio.Queue[tuple[float, Event]] = asyncio.Queue()

    def __len__(self) -> int:
        return self._events.qsize()

    def post(self, event: Event) -> None:
        """Queue an event behind all others."""
        self._events.put_nowait((asyncio.get_running_loop().time(), event))

    async def next(self) -> Event:
        """Wait for the next event, and take it out."""
        posted_s, event = await self._events.get()
        self._waits.record(int((asyncio.get_running_loop().time() - posted_s) * 1e6))
        return event
