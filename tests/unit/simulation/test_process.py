"""What is started for a process, and all that this schedules, belongs to it."""

from __future__ import annotations

import asyncio

from barnabas.simulation.loop import SimulatedLoop
from barnabas.simulation.process import CURRENT, Process


def test_tasks_timers_and_jobs_inherit_their_process():
    loop = SimulatedLoop(seed=1)
    process = Process("one")
    seen: list[Process | None] = []

    def look() -> None:
        seen.append(CURRENT.get())

    async def child() -> None:
        look()

    async def main() -> None:
        look()
        loop.call_soon(look)
        loop.call_later(1, look)
        await loop.run_in_executor(None, look)
        await asyncio.create_task(child())
        await asyncio.sleep(2)

    task = loop.create_task(main(), context=process.context())
    assert list(process.tasks) == [task]
    loop.call_soon(look)
    loop.run_until_complete(task)
    loop.close()
    assert seen.count(None) == 1
    assert seen.count(process) == 5
    assert not process.tasks


def test_a_paused_process_takes_no_step_and_then_catches_up_in_order():
    loop = SimulatedLoop(seed=1)
    process = Process("one")
    ticks: list[tuple[int, float]] = []

    async def tick() -> None:
        for number in range(6):
            ticks.append((number, loop.time()))
            await asyncio.sleep(1)

    async def main() -> None:
        ticking = loop.create_task(tick(), context=process.context())
        await asyncio.sleep(1.5)
        process.paused = True
        await asyncio.sleep(10)
        assert len(ticks) == 2
        loop.resume(process)
        await ticking

    loop.run_until_complete(main())
    loop.close()
    assert ticks == [(0, 0), (1, 1), (2, 11.5), (3, 12.5), (4, 13.5), (5, 14.5)]


def test_a_killed_process_does_not_even_clean_up():
    loop = SimulatedLoop(seed=1)
    process = Process("one")
    cleaned: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(5)
        finally:
            cleaned.append("up")

    async def main() -> None:
        loop.create_task(work(), context=process.context())
        await asyncio.sleep(1)
        loop.kill(process)
        await asyncio.sleep(10)
        assert cleaned == []

    loop.run_until_complete(main())
    loop.close()
    assert cleaned == []
    assert loop.failures == []
