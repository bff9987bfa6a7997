"""Between a program's loop and the thread that works for it.

A blocking client's calls run in a worker thread. Its callbacks are coroutine functions of the
program: they run on the program's loop while the worker waits. What they call on the same client
is done by that waiting worker, since the client is in its hands.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import ContextVar
from queue import SimpleQueue
from typing import Any

Job = Callable[[], None]

_worker: ContextVar[SimpleQueue[Job | None] | None] = ContextVar("worker", default=None)
"""The worker that waits for the callback that is running."""

CALLBACKS = ("error_cb", "throttle_cb", "stats_cb", "on_commit")


async def call(
    executor: Executor | None, function: Callable[..., Any], *args: Any, **kw: Any
) -> Any:
    """Run a blocking call in a worker, and return its result."""
    loop = asyncio.get_running_loop()
    work = functools.partial(function, *args, **kw)
    worker = _worker.get()
    if worker is None:
        return await loop.run_in_executor(executor, work)
    done: asyncio.Future[Any] = loop.create_future()
    worker.put(functools.partial(_do, loop, done, work))
    return await done


def wrapped(loop: asyncio.AbstractEventLoop, callback: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for the worker that runs a coroutine function on the loop, and waits."""

    def called(*arguments: Any) -> Any:
        jobs: SimpleQueue[Job | None] = SimpleQueue()

        async def run() -> Any:
            token = _worker.set(jobs)
            try:
                return await callback(*arguments)
            finally:
                _worker.reset(token)

        outcome = asyncio.run_coroutine_threadsafe(run(), loop)
        outcome.add_done_callback(lambda _: jobs.put(None))
        while (job := jobs.get()) is not None:
            job()
        return outcome.result()

    return called


def _do(
    loop: asyncio.AbstractEventLoop, done: asyncio.Future[Any], work: Callable[[], Any]
) -> None:
    def tell(result: Any, failure: BaseException | None) -> None:
        if done.cancelled():
            return
        if failure is None:
            done.set_result(result)
        else:
            done.set_exception(failure)

    try:
        result = work()
    except Exception as failure:  # noqa: BLE001  # raised again where it was asked for
        loop.call_soon_threadsafe(tell, None, failure)
    else:
        loop.call_soon_threadsafe(tell, result, None)
