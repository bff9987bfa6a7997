"""The controller's events: in order, and how long they waited."""

from __future__ import annotations

import asyncio

from barnabas.broker.cluster.event_queue import EventQueue
from barnabas.metrics.instruments import Histogram


def test_events_are_taken_in_order_and_their_waits_recorded() -> None:
    async def story() -> None:
        waits = Histogram()
        queue = EventQueue(waits)

        async def first() -> None:
            """Do nothing."""

        async def second() -> None:
            """Do nothing."""

        queue.post(first)
        queue.post(second)
        assert len(queue) == 2
        assert await queue.next() is first
        assert waits.count == 1
        assert await queue.next() is second
        assert (len(queue), waits.count) == (0, 2)

    asyncio.run(story())
