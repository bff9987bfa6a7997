"""The simulated loop keeps asyncio's promises, without time and without threads."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from barnabas.model.errors import InvalidValueError
from barnabas.simulation.loop import SimulatedLoop, SimulationDeadlock


@pytest.fixture
def loop():
    loop = SimulatedLoop(seed=1)
    yield loop
    loop.close()


def test_an_hour_passes_in_no_time(loop):
    began = time.thread_time()

    async def wait() -> float:
        await asyncio.sleep(3600)
        return loop.time()

    assert loop.run_until_complete(wait()) == 3600
    assert time.thread_time() - began < 5


def test_call_soon_keeps_its_order_even_with_jitter():
    loop = SimulatedLoop(seed=3, jitter_ms=5)
    seen: list[int] = []
    for number in range(50):
        loop.call_soon(seen.append, number)
    loop.call_later(1, loop.stop)
    loop.run_forever()
    loop.close()
    assert seen == list(range(50))


def order_of_equal_timers(seed: int, jitter_ms: float) -> list[int]:
    loop = SimulatedLoop(seed, jitter_ms=jitter_ms)
    seen: list[int] = []
    for number in range(20):
        loop.call_at(1, seen.append, number)
    loop.call_at(2, loop.stop)
    loop.run_forever()
    loop.close()
    return seen


def test_jitter_reorders_equal_timers_by_seed():
    assert order_of_equal_timers(1, 0) == list(range(20))
    shuffled = order_of_equal_timers(1, 1)
    assert sorted(shuffled) == list(range(20))
    assert shuffled != list(range(20))
    assert shuffled == order_of_equal_timers(1, 1)
    assert shuffled != order_of_equal_timers(2, 1)


def test_timers_fire_in_order_of_time_and_can_be_cancelled(loop):
    seen: list[tuple[str, float]] = []
    loop.call_later(3, lambda: seen.append(("late", loop.time())))
    loop.call_later(1, lambda: seen.append(("early", loop.time())))
    loop.call_later(2, lambda: seen.append(("never", loop.time()))).cancel()
    loop.call_later(-5, lambda: seen.append(("now", loop.time())))
    loop.call_at(4, loop.stop)
    loop.run_forever()
    assert seen == [("now", 0), ("early", 1), ("late", 3)]


def test_waiting_for_nothing_is_a_deadlock_that_names_who_waits(loop):
    async def wait_for_ever() -> None:
        await loop.create_future()

    async def main() -> None:
        await asyncio.gather(loop.create_task(wait_for_ever(), name="patient"), asyncio.sleep(7))

    with pytest.raises(SimulationDeadlock, match=r"at 7\.000 s.*patient in .*wait_for_ever:\d+"):
        loop.run_until_complete(main())


def test_executor_jobs_run_on_the_loop_and_give_results_and_errors(loop):
    def job(value: int) -> int:
        return 10 // value + threading.get_ident() * 0

    async def main() -> None:
        assert await loop.run_in_executor(None, job, 5) == 2
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(None, job, 0)
        assert await asyncio.to_thread(threading.get_ident) == threading.get_ident()
        ran: list[int] = []
        cancelled = loop.run_in_executor(None, ran.append, 1)
        cancelled.cancel()
        await asyncio.sleep(1)
        assert ran == []

    loop.run_until_complete(main())
    assert loop.failures == []


def test_executor_jobs_take_a_time_that_the_seed_decides():
    def finish_order(seed: int) -> list[int]:
        loop = SimulatedLoop(seed, jitter_ms=10)
        done: list[int] = []

        async def job(number: int) -> None:
            await loop.run_in_executor(None, int)
            done.append(number)

        async def main() -> None:
            await asyncio.gather(*(job(number) for number in range(10)))

        loop.run_until_complete(main())
        assert 0 < loop.time() <= 0.02
        loop.close()
        return done

    assert finish_order(1) == finish_order(1)
    assert len({tuple(finish_order(seed)) for seed in range(5)}) > 1


def test_the_usual_asyncio_tools_work(loop):
    async def main() -> list[object]:
        queue: asyncio.Queue[int] = asyncio.Queue(1)
        results: list[object] = []

        async def produce() -> None:
            for number in range(3):
                await queue.put(number)

        async def generate():
            try:
                yield 1
                yield 2
            finally:
                results.append("generator closed")

        async with asyncio.TaskGroup() as group:
            group.create_task(produce())
            results += [await queue.get() for _ in range(3)]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        results.append(loop.time())
        async for number in generate():
            results.append(number)
            break
        await asyncio.sleep(0)
        await loop.shutdown_asyncgens()
        return results

    assert loop.run_until_complete(main()) == [0, 1, 2, 5.0, 1, "generator closed"]


def test_asyncio_runner_accepts_the_loop():
    async def main() -> float:
        await asyncio.sleep(2)
        return asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(seed=1)) as runner:
        assert runner.run(main()) == 2


def test_failures_of_callbacks_are_kept_or_handled(loop):
    def fail() -> None:
        raise ValueError("broken")

    loop.call_soon(fail)
    loop.call_later(1, loop.stop)
    loop.run_forever()
    assert [str(context["exception"]) for context in loop.failures] == ["broken"]

    handled: list[BaseException] = []
    loop.set_exception_handler(lambda loop, context: handled.append(context["exception"]))
    assert loop.get_exception_handler() is not None
    loop.call_soon(fail)
    loop.call_later(1, loop.stop)
    loop.run_forever()
    assert len(loop.failures) == len(handled) == 1


def test_a_closed_loop_takes_nothing_more():
    loop = SimulatedLoop(seed=1)
    loop.close()
    assert loop.is_closed()
    for call in (loop.call_soon, loop.call_soon_threadsafe):
        with pytest.raises(RuntimeError, match="closed"):
            call(print)
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_later(1, print)


def test_two_loops_cannot_run_inside_each_other(loop):
    async def main() -> None:
        other = SimulatedLoop(seed=2)
        with pytest.raises(RuntimeError, match="running already"):
            other.run_forever()
        with pytest.raises(RuntimeError, match="running event loop"):
            loop.close()
        other.close()

    loop.run_until_complete(main())


def test_without_a_network_there_is_no_connection(loop):
    async def main() -> None:
        with pytest.raises(InvalidValueError, match="no network"):
            await loop.create_connection(asyncio.Protocol, "h", 1)
        with pytest.raises(InvalidValueError, match="TLS"):
            await loop.create_server(asyncio.Protocol, "h", 1, ssl=object())

    loop.run_until_complete(main())
