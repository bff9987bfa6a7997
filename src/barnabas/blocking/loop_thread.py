"""One daemon thread with an event loop of its own, on which a blocking client's parts run.

`call` runs a coroutine there and waits for it, `post` schedules a function there without waiting;
both work from any thread, also one with a loop of its own. A wait can be interrupted by Ctrl-C,
which cancels the coroutine.

A forked process does not have the thread, and its descriptors (also the loop's own) are those of
its parent. Using the object there raises `ClientForkedError`; and what runs on the loop is kept
from being finalized there, since closing a transport in the child would make the parent's
transport miss all further events. `hold` adds objects that no task of the loop refers to.

The thread ends with `stop`, when the object is no longer referenced, or when the interpreter exits.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import weakref
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from barnabas.client.errors import ClientForkedError, IllegalStateError, KafkaTimeoutError

Result = TypeVar("Result")

_END_S = 5.0
"""How long to wait for the thread to end; as a daemon, it is abandoned then."""


class LoopThread:
    """A thread that runs a loop from its creation until `stop`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._process = os.getpid()
        self._loop = _new_loop()
        self._thread = threading.Thread(target=_run, args=(self._loop,), name=name, daemon=True)
        self._thread.start()
        self._held: list[object] = []
        self._end = weakref.finalize(self, _end, self._loop, self._thread, self._process)
        os.register_at_fork(after_in_child=partial(_keep_in_child, weakref.ref(self)))

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, for objects that must be created on it; use `call` and `post` to reach it."""
        return self._loop

    @property
    def current(self) -> bool:
        """Return whether the caller runs on the thread itself, that is in a callback."""
        return threading.current_thread() is self._thread

    @property
    def running(self) -> bool:
        """Return whether the thread runs, in this process."""
        return self._process == os.getpid() and self._thread.is_alive()

    def call(
        self, coroutine: Coroutine[Any, Any, Result], timeout_ms: float | None = None
    ) -> Result:
        """Run a coroutine on the loop and return its result.

        Raise KafkaTimeoutError after `timeout_ms`; whatever ends the wait early (timeout, Ctrl-C)
        cancels the coroutine.
        """
        try:
            self._check()
            if self.current:
                raise IllegalStateError(
                    f"{self.name}: a blocking client cannot wait inside its own callbacks"
                )
        except IllegalStateError:
            coroutine.close()
            raise
        outcome = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return outcome.result(None if timeout_ms is None else timeout_ms / 1000)
        except TimeoutError as failure:
            if outcome.done():  # the coroutine itself raised it
                raise
            outcome.cancel()
            raise KafkaTimeoutError(
                f"{self.name}: not completed within {timeout_ms:g} ms"
            ) from failure
        except BaseException:
            outcome.cancel()
            raise

    def post(self, callback: Callable[..., object], *arguments: Any) -> None:
        """Call a function on the loop soon, without waiting for it."""
        if self._process != os.getpid():
            self._check()
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError as closed:  # by its thread, as the last thing it does
            raise IllegalStateError(f"{self.name} is closed") from closed

    def hold(self, part: object) -> None:
        """Keep an object with connections from being finalized in a forked process."""
        self._held.append(part)

    def stop(self) -> None:
        """End the thread: its tasks are cancelled and awaited, then the loop is closed.

        Does nothing when it has ended, or in a forked process.
        """
        self._end()

    def _check(self) -> None:
        if self._process != os.getpid():
            raise ClientForkedError(
                f"{self.name} was created in process {self._process} and cannot be used in "
                f"{os.getpid()}, a fork of it: create a new client after the fork"
            )
        if not self._thread.is_alive():
            raise IllegalStateError(f"{self.name} is closed")


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread, process: int) -> None:
    if process != os.getpid() or not thread.is_alive():
        return
    loop.call_soon_threadsafe(loop.stop)
    if threading.current_thread() is not thread:  # the last holder may be a callback on the loop
        thread.join(_END_S)


def _keep_in_child(reference: weakref.ref[LoopThread]) -> None:
    """Keep what belongs to the parent's loop from being finalized in this forked process."""
    thread = reference()
    if thread is not None:
        import ctypes

        for part in (thread._loop, *asyncio.all_tasks(thread._loop), *thread._held):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(part))


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        while tasks := asyncio.all_tasks(loop):  # an ending one may start another
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()

    class Loop(uvloop.Loop):
        """A uvloop that resolves names in Python's threads.

        Those of libuv would be waited for, and crash, when a forked process exits.
        """

        async def getaddrinfo(  # type: ignore[override]
            self, host: str, port: int, **options: Any
        ) -> Any:
            return await self.run_in_executor(
                None, partial(socket.getaddrinfo, host, port, **options)
            )

    return Loop()
