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

from barnabas.broker.loop import (
    LONG_STEP_S,
    NICENESS,
    Conditions,
    LongSteps,
    Step,
    WheelTimer,
    background_thread,
    offload,
    spawn,
)


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


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now_s = 5.0
        self.steps = LongSteps(lambda: self.now_s)

    def pass_(self, seconds: float) -> None:
        self.now_s += seconds


def test_the_longest_step_is_kept_until_it_is_taken() -> None:
    clock = Clock()
    assert clock.steps.take() is None
    clock.steps.ran("request", "Fetch", LONG_STEP_S - 0.001)
    assert clock.steps.take() is None
    for seconds in (0.2, 0.3, 0.1):
        clock.steps.ran("request", f"took {seconds}", seconds)
    assert clock.steps.take() == Step("request", "took 0.3", 0.3)
    assert clock.steps.take() is None


def test_a_call_is_timed_also_if_it_fails() -> None:
    clock = Clock()

    def fail() -> None:
        clock.pass_(0.5)
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        clock.steps.call("sweep", fail)
    assert clock.steps.take() == Step("task", "sweep", 0.5)
    assert clock.steps.call("sweep", lambda: 7) == 7


def test_the_steps_of_a_coroutine_are_timed_and_its_waits_are_not() -> None:
    clock = Clock()

    async def work() -> str:
        clock.pass_(0.1)
        await asyncio.sleep(0)
        clock.pass_(0.2)
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            return "timed out"
        return "not reached"

    async def story() -> str:
        task = asyncio.create_task(clock.steps.timed("retention", work()))
        await asyncio.sleep(0)
        clock.pass_(5.0)  # while it waits
        return await task

    assert asyncio.run(story()) == "timed out"
    step = clock.steps.take()
    assert step is not None
    assert (step.kind, step.name, round(step.seconds, 6)) == ("task", "retention", 0.2)


def test_a_failure_and_a_cancellation_reach_the_caller() -> None:
    clock = Clock()
    cancelled = False

    async def fail() -> None:
        raise KeyError("mine")

    async def wait() -> None:
        nonlocal cancelled
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled = True
            raise

    async def story() -> None:
        with pytest.raises(KeyError):
            await clock.steps.timed("a", fail())
        task = asyncio.create_task(clock.steps.timed("b", wait()))
        await settle()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())
    assert cancelled
