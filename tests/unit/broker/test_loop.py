"""Around the event loop: threads, timers, conditions, tasks."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from barnabas.broker.loop import NICENESS, Conditions, WheelTimer, background_thread, offload, spawn


async def settle() -> None:
    """Let everything run that can run now."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_result_and_failure() -> None:
    async def story() -> None:
        assert await offload(None, divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await offload(None, divmod, 7, 0)

    asyncio.run(story())


def test_cancelled_after_its_end() -> None:
    """Who is cancelled meanwhile comes back when the thread is done, not before."""

    async def story() -> None:
        begun, gate, ended = Event(), Event(), Event()

        def work() -> None:
            begun.set()
            gate.wait()
            ended.set()

        with ThreadPoolExecutor(1) as executor:
            asking = asyncio.get_running_loop().create_task(offload(executor, work))
            await asyncio.to_thread(begun.wait)
            asking.cancel()
            await settle()
            assert not asking.done()
            gate.set()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert ended.is_set()

    asyncio.run(story())


def test_rings_in_order() -> None:
    """Timers fire when due, an earlier one added later before the others."""

    async def story() -> None:
        loop = asyncio.get_running_loop()
        alarm = WheelTimer(loop)
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
        alarm = WheelTimer(loop)
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
        alarm = WheelTimer(loop)
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
        alarm = WheelTimer(asyncio.get_running_loop())
        alarm.set()
        assert alarm.wheel.next_deadline_ms() is None
        alarm.stop()

    asyncio.run(story())


def test_who_waits_is_woken_when_it_holds() -> None:
    async def story() -> None:
        conditions, found = Conditions(), []
        waiting = asyncio.ensure_future(conditions.until(lambda: bool(found), 60_000))
        await asyncio.sleep(0)
        conditions.look()
        await asyncio.sleep(0)
        assert not waiting.done()
        found.append(1)
        conditions.look()
        assert await waiting

    asyncio.run(story())


def test_time_may_be_up() -> None:
    assert not asyncio.run(Conditions().until(lambda: False, 1))


def test_when_nothing_more_happens_nobody_waits() -> None:
    async def story() -> None:
        conditions = Conditions()
        waiting = asyncio.ensure_future(conditions.until(lambda: False, 60_000))
        await asyncio.sleep(0)
        conditions.end()
        assert not await waiting
        assert not await conditions.until(lambda: False, 60_000)
        assert await conditions.until(lambda: True, 60_000)

    asyncio.run(story())


def test_a_mistake_is_told_although_the_task_is_kept() -> None:
    async def fails() -> None:
        raise ZeroDivisionError("a bug")

    async def waits() -> None:
        await asyncio.Event().wait()

    async def works() -> None:
        return None

    async def story() -> None:
        told: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        kept = [spawn(work(), work.__name__) for work in (fails, waits, works)]
        await asyncio.wait(kept[::2])
        kept[1].cancel()
        await asyncio.wait(kept)
        await asyncio.sleep(0)
        assert [each["message"] for each in told] == ["fails crashed"]
        assert isinstance(told[0]["exception"], ZeroDivisionError)

    asyncio.run(story())


def priority() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_a_background_thread_gives_way_and_leaves_other_threads_alone() -> None:
    before = priority()
    with background_thread("background") as executor:
        inside = executor.submit(priority).result(30)
    assert inside == min(before + NICENESS, 19)
    assert priority() == before


def test_all_work_of_an_executor_is_done_by_one_thread() -> None:
    with background_thread("background") as executor:
        waiting = [executor.submit(threading.get_ident) for _ in range(5)]
        assert len({each.result(30) for each in waiting} | {threading.get_ident()}) == 2
