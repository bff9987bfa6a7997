"""User code that the loop calls, run in the thread that waits for the loop.

A blocking client's callbacks run in the thread that called the client. While that thread waits for
a coroutine (`run`), the coroutine can have functions run there (`invoke`); they may call the client
again, which nests another `run`.

`interrupt` ends a wait from outside, from any thread or signal handler: the coroutine is cancelled,
and when it has ended, which may be after it finished a step, `run` raises WakeupError. One
interrupt ends one wait, the current one or the next.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from queue import SimpleQueue
from typing import Any, TypeVar

from barnabas.blocking.loop_thread import LoopThread
from barnabas.client.errors import WakeupError
from barnabas.consumer.group.callbacks import break_off

Result = TypeVar("Result")

_Callback = Callable[[], None]


def _look_up() -> None:
    """Do nothing: makes a waiting thread notice that it was interrupted."""


class UserCallbacks:
    """The way from a loop back to the thread that waits for it."""

    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread
        self._interrupted = False
        # Queues of the standard library that may be put to from a signal handler.
        self._waiting: list[SimpleQueue[_Callback | None]] = []

    def interrupt(self) -> None:
        """Make the current interruptible wait, or the next one, raise WakeupError."""
        self._interrupted = True
        for queue in list(self._waiting):
            queue.put(_look_up)

    def raise_interrupt(self) -> None:
        """Raise WakeupError if there was an interrupt, once."""
        if self._interrupted:
            self._interrupted = False
            raise WakeupError("wakeup() was called")

    def run(self, work: Coroutine[Any, Any, Result], *, interruptible: bool = False) -> Result:
        """Run a coroutine on the loop, and its callbacks here; return the coroutine's result."""
        queue: SimpleQueue[_Callback | None] = SimpleQueue()
        outcome: list[asyncio.Task[Result]] = []

        def begin() -> None:
            task = self._thread.loop.create_task(work)
            outcome.append(task)
            task.add_done_callback(lambda _: queue.put(None))

        self._waiting.append(queue)  # first: the loop may ask for a callback at once
        try:
            self._thread.post(begin)
        except BaseException:
            self._waiting.remove(queue)
            work.close()
            raise
        claimed = False
        try:
            if interruptible and self._interrupted:  # before this wait was listed
                queue.put(_look_up)
            while (callback := queue.get()) is not None:
                callback()
                if interruptible and self._interrupted and not claimed:
                    claimed = True
                    self._interrupted = False  # waits inside callbacks must not end as well
                    self._thread.post(lambda: outcome[0].cancel())
        except BaseException:  # Ctrl-C: the coroutine must not continue without its caller
            self._thread.post(lambda: break_off(outcome[0]))
            raise
        finally:
            self._waiting.remove(queue)
        if claimed:
            self._interrupted = True
            if outcome[0].cancelled():
                self.raise_interrupt()
        return outcome[0].result()

    async def invoke(self, function: Callable[..., Any], *arguments: Any) -> object:
        """Run a function in the waiting thread, or here if none waits; return its result."""
        if not self._waiting:
            result = function(*arguments)
        else:
            loop = asyncio.get_running_loop()
            done: asyncio.Future[Any] = loop.create_future()
            self._waiting[-1].put(lambda: _run_callback(loop, done, function, arguments))
            result = await done
        return await result if inspect.isawaitable(result) else result


def _run_callback(
    loop: asyncio.AbstractEventLoop,
    done: asyncio.Future[Any],
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    def settle(result: Any, failure: BaseException | None) -> None:
        if done.cancelled():
            return
        if failure is None:
            done.set_result(result)
        else:
            done.set_exception(failure)

    try:
        result = function(*arguments)
    except Exception as failure:  # noqa: BLE001  # raised again where it was asked for
        loop.call_soon_threadsafe(settle, None, failure)
    else:
        loop.call_soon_threadsafe(settle, result, None)
