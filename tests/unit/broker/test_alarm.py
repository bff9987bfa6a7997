"""The alarm rings for the wheel's next timer, and no more often than needed."""

from __future__ import annotations

import asyncio

from barnabas.broker.alarm import Alarm


def test_rings_in_order() -> None:
    """Timers fire when due, an earlier one added later before the others."""

    async def story() -> None:
        loop = asyncio.get_running_loop()
        alarm = Alarm(loop)
        fired: list[str] = []
        done = loop.create_future()
        start = alarm.now_ms()
        alarm.wheel.add(start + 30, lambda: (fired.append("late"), done.set_result(None)))
        alarm.set()
        alarm.wheel.add(start + 5, lambda: fired.append("early"))
        alarm.set()
        await asyncio.wait_for(done, 60)
        assert fired == ["early", "late"]
        assert alarm.now_ms() >= start + 30

    asyncio.run(story())


def test_cancelled_and_stopped() -> None:
    """A cancelled timer does not fire, and a stopped alarm does not ring."""

    async def story() -> None:
        loop = asyncio.get_running_loop()
        alarm = Alarm(loop)
        fired: list[str] = []
        done = loop.create_future()
        start = alarm.now_ms()
        alarm.wheel.add(start + 5, lambda: fired.append("cancelled")).cancel()
        alarm.wheel.add(start + 10, lambda: done.set_result(None))
        alarm.set()
        await asyncio.wait_for(done, 60)
        alarm.wheel.add(alarm.now_ms() + 5, lambda: fired.append("stopped"))
        alarm.set()
        alarm.stop()
        later = loop.create_future()
        loop.call_later(0.03, later.set_result, None)
        await later
        assert fired == []

    asyncio.run(story())


def test_nothing_to_ring_for() -> None:
    """Without timers the loop is not woken."""

    async def story() -> None:
        alarm = Alarm(asyncio.get_running_loop())
        alarm.set()
        assert alarm.wheel.next_deadline_ms() is None
        alarm.stop()

    asyncio.run(story())
