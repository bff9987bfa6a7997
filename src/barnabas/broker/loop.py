"""Helpers around the event loop: work on other threads, timers, conditions, background tasks, and
what keeps the loop from all of them for long.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from threading import Lock
from types import coroutine
from typing import Any, NamedTuple, ParamSpec, TypeVar

from barnabas.timing.wheel import TimingWheel

NICENESS = 10
"""About a tenth of a core under contention; all of a core that is idle."""
LONG_STEP_S = 0.05
"""Shorter steps are not recorded: a loop that stands still does so for longer."""

P = ParamSpec("P")
T = TypeVar("T")


async def offload(executor: Executor | None, work: Callable[..., T], *arguments: object) -> T:
    """Run work on an executor (None: the loop's own) and return its result.

    A thread cannot be interrupted. A caller that is cancelled while its work runs returns only when
    the work has ended: until then it may write to files that the next broker, or the next step,
    will use.
    """
    running = asyncio.get_running_loop().run_in_executor(executor, work, *arguments)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


class WheelTimer:
    """Runs a timing wheel by one timer of the loop, set for the wheel's next bucket; time is the
    loop's own, in milliseconds.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        before_running: Callable[[], object] = lambda: None,
    ) -> None:
        """Call `before_running` before anything that is due: a process that was paused must notice
        that first.
        """
        self._loop = loop
        self._before_running = before_running
        self.wheel = TimingWheel(start_ms=self.now_ms())
        self._handle: asyncio.TimerHandle | None = None
        self._set_for_ms = 0

    def now_ms(self) -> int:
        """Return the loop's time, which is monotonic and has no meaning outside this process."""
        return int(self._loop.time() * 1000)

    def set(self) -> None:
        """Schedule the wheel's next bucket; call after adding timers."""
        due_ms = self.wheel.next_deadline_ms()
        if due_ms is None or (self._handle is not None and due_ms >= self._set_for_ms):
            return
        if self._handle is not None:
            self._handle.cancel()
        self._set_for_ms = due_ms
        self._handle = self._loop.call_at((due_ms + 1) / 1000, self._run)

    def stop(self) -> None:
        """Never run the wheel again."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _run(self) -> None:
        self._handle = None
        try:
            self._before_running()
            self.wheel.run(self.now_ms())
        finally:
            self.set()  # also if a timer fails: the others are still due


class Conditions:
    """Callers that wait for a condition; call `look` after each event that may change one."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self._ended = False

    async def until(self, holds: Callable[[], bool], timeout_ms: float) -> bool:
        """Wait until a condition holds or the timeout expires; return whether it holds."""
        if self._ended or holds():
            return holds()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.watch(holds, waiter)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await waiter
        except TimeoutError:
            return holds()
        return not self._ended or holds()

    def watch(self, holds: Callable[[], bool], waiter: asyncio.Future[None]) -> None:
        """Set a future once a condition holds, unless it is done by then."""
        self._waiting.append((holds, waiter))

    def look(self) -> None:
        """Wake the callers whose condition holds."""
        still = []
        for holds, waiter in self._waiting:
            if waiter.done():
                continue
            if holds():
                waiter.set_result(None)
            else:
                still.append((holds, waiter))
        self._waiting = still

    def end(self) -> None:
        """Wait for no condition from now on: all calls return at once whether theirs holds."""
        self._ended = True
        for _, waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()


class Step(NamedTuple):
    """What ran on the loop from one turn to the next."""

    kind: str
    """As the diary has it as a cause: request, task, garbage-collection."""
    name: str
    seconds: float


class LongSteps:
    """The longest step of the loop: what has run while the loop stood still."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._longest: Step | None = None
        self._collecting_since_s = 0.0
        self._on_collection: Callable[[float], None] = lambda seconds: None

    def take(self) -> Step | None:
        """Return the longest step since the last call; None if all were short."""
        longest, self._longest = self._longest, None
        return longest

    def ran(self, kind: str, name: str, seconds: float) -> None:
        """Record a step."""
        if seconds >= LONG_STEP_S and (self._longest is None or seconds > self._longest.seconds):
            self._longest = Step(kind, name, seconds)

    def call(self, name: str, work: Callable[[], T]) -> T:
        """Call what a task does, and record how long it took."""
        began_s = self._clock()
        try:
            return work()
        finally:
            self.ran("task", name, self._clock() - began_s)

    async def timed(self, name: str, work: Awaitable[T]) -> T:
        """Await what a task does, and record how long its steps take, without its waits."""
        return await self._stepwise(name, work)

    @coroutine
    def _stepwise(self, name: str, work: Awaitable[T]) -> Generator[Any, Any, T]:
        steps = work.__await__()
        step: Callable[[], Any] = partial(steps.send, None)
        while True:
            try:
                awaited = self.call(name, step)
            except StopIteration as ended:
                result: T = ended.value
                return result
            try:
                step = partial(steps.send, (yield awaited))
            except BaseException as failure:  # noqa: BLE001 - the task's, at its await
                step = partial(steps.throw, failure)

    def watch_collector(self, on_collection: Callable[[float], None]) -> None:
        """Record garbage collections: they hold up all threads, whichever began them.

        `on_collection` is called with the seconds of each, on the thread that began it.
        """
        self._on_collection = on_collection
        gc.callbacks.append(self._collects)

    def unwatch_collector(self) -> None:
        """Record no more of them."""
        if self._collects in gc.callbacks:
            gc.callbacks.remove(self._collects)

    def _collects(self, phase: str, information: dict[str, int]) -> None:
        if phase == "start":
            self._collecting_since_s = self._clock()
        else:
            seconds = self._clock() - self._collecting_since_s
            self._on_collection(seconds)
            self.ran("garbage-collection", f"generation {information['generation']}", seconds)


def spawn(work: Coroutine[Any, Any, None], what: str) -> asyncio.Task[None]:
    """Run a background task; `what` names it in the report if it crashes.

    By itself asyncio reports a crash only when the task is garbage-collected. A task that its owner
    keeps for as long as the broker runs would stop unnoticed.
    """
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(lambda ended: _report(ended, what))
    return task


def _report(ended: asyncio.Task[None], what: str) -> None:
    if not ended.cancelled() and (failure := ended.exception()) is not None:
        ended.get_loop().call_exception_handler(
            {"message": f"{what} crashed", "exception": failure, "task": ended}
        )


def background_thread(name: str) -> ThreadPoolExecutor:
    """Return an executor of one thread of lower priority; the caller shuts it down.

    Work on another thread that releases the GIL still takes a core from the loop, for whole slices
    of the scheduler (some milliseconds) whenever more threads want to run than there are cores. A
    lower priority ends that: the loop runs the moment it wakes, and the work takes what is left.
    It is not the lowest one, with which it would starve on a busy machine, and a thread that waits
    for a core while it holds the GIL would keep the loop waiting too.
    """
    return ThreadPoolExecutor(1, name, initializer=_lower_priority)


def _lower_priority() -> None:
    # Only Linux has priorities per thread; on other systems the loop's would be lowered too.
    if sys.platform == "linux":
        thread_id = threading.get_native_id()
        niceness = os.getpriority(os.PRIO_PROCESS, thread_id) + NICENESS
        os.setpriority(os.PRIO_PROCESS, thread_id, min(niceness, 19))


class IoThreads(Executor):
    """The threads of `num.io.threads`, whose number can be changed while they work."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = _pool(count)
        self._lock = Lock()  # threads submit work too

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Queue work."""
        with self._lock:
            return self._pool.submit(work, *args, **kwargs)

    @property
    def queued(self) -> int:
        """Return how much work waits for a thread."""
        return self._pool._work_queue.qsize()

    def resize(self, count: int) -> None:
        """Use another number of threads; the old ones finish their work and end."""
        if count != self.count:
            with self._lock:
                former, self._pool, self.count = self._pool, _pool(count), count
            former.shutdown(wait=False)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more work."""
        with self._lock:
            self._pool.shutdown(wait, cancel_futures=cancel_futures)


def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, "barnabas-io")
