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


def test_a_timer_that_fails_does_not_stop_the_others() -> None:
    """Its failure is the loop's to tell of; what was due with it, or later, fires."""

    async def story() -> None:
        loop = asyncio.get_running_loop()
        alarm = Alarm(loop)
        told: list[str] = []
        loop.set_exception_handler(lambda _, context: told.append(str(context["exception"])))
        fired: list[str] = []
        done = loop.create_future()

        def fail() -> None:
            raise ValueError("a bug")

        start = alarm.now_ms()
        alarm.wheel.add(start + 5, fail)
        alarm.wheel.add(start + 5, lambda: fired.append("with it"))
        alarm.wheel.add(start + 20, lambda: (fired.append("later"), done.set_result(None)))
        alarm.set()
        await asyncio.wait_for(done, 60)
        assert told == ["a bug"]
        assert fired == ["with it", "later"]

    asyncio.run(story())


def test_nothing_to_ring_for() -> None:
    """Without timers the loop is not woken."""

    async def story() -> None:
        alarm = Alarm(asyncio.get_running_loop())
        alarm.set()
        assert alarm.wheel.next_deadline_ms() is None
        alarm.stop()

    asyncio.run(story())
