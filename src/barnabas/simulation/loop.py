"""An asyncio event loop without time, sockets or threads: one seed, one order of events.

The clock is virtual. It stands still while anything is ready and jumps to the next timer when
nothing is, so an hour of timeouts passes in milliseconds. `run_in_executor` runs the job on the
loop, as a step of its own. Connections go through an in-memory network. When nothing is ready and
no timer is set, nothing can ever happen again: that is a SimulationDeadlock, which names the
tasks that wait.

Callbacks of `call_soon` run in the order they were scheduled, as asyncio promises. With
`jitter_ms` above zero the seed decides what asyncio leaves open: the order of timers due at the
same instant, and how long executor jobs take.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import socket
import sys
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from random import Random
from typing import Any, Protocol, TypeVar, TypeVarTuple

from barnabas.model.errors import BarnabasError, InvalidValueError
from barnabas.simulation.process import CURRENT, Process
from barnabas.simulation.trace import Trace

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

ProtocolFactory = Callable[[], asyncio.BaseProtocol]


class SimulationDeadlock(BarnabasError):
    """Nothing is ready and no timer is set, yet tasks are waiting."""


class Connector(Protocol):
    """Where the loop's connections go; see `network.py`."""

    def listen(self, factory: ProtocolFactory, host: str, port: int) -> asyncio.AbstractServer:
        """Bind an address of the running process's host; it accepts once it serves."""

    async def connect(
        self, factory: ProtocolFactory, host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect from the running process's host to an address."""


class SimulatedLoop(asyncio.AbstractEventLoop):
    """A deterministic event loop; see the top of this file."""

    def __init__(self, seed: int = 0, *, jitter_ms: float = 0.0) -> None:
        self.trace = Trace(self.time)
        self.network: Connector | None = None
        self.failures: list[dict[str, Any]] = []
        """Contexts of unhandled exceptions, as given to the exception handler."""
        self._random = Random(f"loop/{seed}")
        self._jitter = jitter_ms / 1000
        self._now = 0.0
        self._ready: deque[tuple[asyncio.Handle, Process | None]] = deque()
        self._timers: list[tuple[float, float, int, asyncio.TimerHandle, Process | None]] = []
        self._timer_count = 0
        self._task_count = 0
        self._tasks: dict[asyncio.Task[Any], Process | None] = {}
        self._stopping = False
        self._running = False
        self._closed = False
        self._task_factory: Any = None
        self._exception_handler: Any = None
        self._generators: weakref.WeakSet[AsyncGenerator[Any, Any]] = weakref.WeakSet()

    # Time and steps

    def time(self) -> float:
        """Return the virtual time in seconds since the loop was created."""
        return self._now

    def stand_still(self, seconds: float) -> None:
        """Let time pass while nothing runs, as when the process is stopped and continued."""
        assert seconds >= 0
        self._now += seconds

    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        self._check_open()
        context = contextvars.copy_context() if context is None else context
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append((handle, context.get(CURRENT)))
        return handle

    def call_soon_threadsafe(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """Same as `call_soon`: a simulation has one thread."""
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + max(delay, 0), callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        self._check_open()
        context = contextvars.copy_context() if context is None else context
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._timer_count += 1
        tie = self._random.random() if self._jitter else 0.0
        entry = (when, tie, self._timer_count, timer, context.get(CURRENT))
        heapq.heappush(self._timers, entry)
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: cancelled timers are skipped when they are due."""

    def _run_once(self) -> None:
        """Run what is ready now; if nothing is, advance the clock first."""
        timers = self._timers
        while timers and timers[0][3].cancelled():
            heapq.heappop(timers)
        if not self._ready:
            if not timers:
                raise SimulationDeadlock(self._who_waits())
            self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            _, _, _, timer, process = heapq.heappop(timers)
            self._ready.append((timer, process))
        for _ in range(len(self._ready)):
            handle, process = self._ready.popleft()
            if handle.cancelled():
                continue
            if process is not None:
                if process.dead:
                    continue
                if process.paused:
                    process.parked.append(handle)
                    continue
            # The callback is hashed by name, so that a change of order changes the digest.
            self.trace.step("" if process is None else process.host, handle._callback)  # type: ignore[attr-defined]
            handle._run()

    def _who_waits(self) -> str:
        waiting = [
            f"{task.get_name()} in {_place(task)}" for task in self._tasks if not task.done()
        ]
        listed = "; ".join(waiting[:20]) or "no task"
        return f"nothing is ready and no timer is set at {self._now:.3f} s; waiting: {listed}"

    # Processes

    def resume(self, process: Process) -> None:
        """Resume a paused process: first run what became due meanwhile."""
        process.paused = False
        while process.parked:
            self._ready.append((process.parked.popleft(), process))

    def kill(self, process: Process) -> None:
        """End a process: none of its steps runs again, not even a `finally`."""
        process.dead = True
        process.parked.clear()
        for task in process.tasks:
            self._tasks.pop(task, None)
            # It stays pending forever, which is not worth the warning.
            task._log_destroy_pending = False  # type: ignore[attr-defined]

    # Running

    def run_forever(self) -> None:
        self._check_open()
        if self._running or asyncio._get_running_loop() is not None:
            raise RuntimeError("an event loop is running already")
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(self._generators.add, self._finalize_generator)
        asyncio._set_running_loop(self)
        self._running = True
        try:
            while not self._stopping:
                self._run_once()
        finally:
            self._stopping = False
            self._running = False
            asyncio._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    def run_until_complete(self, future: Any) -> Any:
        self._check_open()
        awaited = asyncio.ensure_future(future, loop=self)
        awaited.add_done_callback(self._stop_for)
        try:
            self.run_forever()
        finally:
            awaited.remove_done_callback(self._stop_for)
        assert awaited.done(), "the loop was stopped before the future was done"
        return awaited.result()

    def _stop_for(self, future: asyncio.Future[Any]) -> None:
        self.stop()

    def stop(self) -> None:
        self._stopping = True

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Drop everything scheduled; pending tasks are closed without warnings."""
        if self._running:
            raise RuntimeError("cannot close a running event loop")
        self._closed = True
        self._ready.clear()
        self._timers.clear()
        for task in list(self._tasks):
            bury(task)
        self._tasks.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Event loop is closed")

    def get_debug(self) -> bool:
        return False

    def set_debug(self, enabled: bool) -> None:
        """Ignore: there is nothing to time, and steps must be the same."""

    # Tasks and futures

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
        **options: Any,
    ) -> asyncio.Task[T]:
        self._check_open()
        self._task_count += 1
        # Our own numbering: asyncio's default counts all tasks of the interpreter.
        name = f"task-{self._task_count}" if name is None else name
        context = contextvars.copy_context() if context is None else context
        task: asyncio.Task[T]
        if self._task_factory is None:
            task = asyncio.Task(coro, loop=self, name=name, context=context, **options)
        else:
            task = self._task_factory(self, coro, context=context)
            task.set_name(name)
        process = context.get(CURRENT)
        self._tasks[task] = process
        if process is not None:
            process.tasks[task] = None
        task.add_done_callback(self._forget_task, context=context)
        return task

    def _forget_task(self, task: asyncio.Task[Any]) -> None:
        process = self._tasks.pop(task, None)
        if process is not None:
            process.tasks.pop(task, None)

    def set_task_factory(self, factory: Any) -> None:
        self._task_factory = factory

    def get_task_factory(self) -> Any:
        return self._task_factory

    def run_in_executor(
        self, executor: Any, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run a job as a step of the loop; with jitter it starts and ends a little later."""
        result: asyncio.Future[T] = self.create_future()

        def finish(value: T | None, error: BaseException | None) -> None:
            if result.cancelled():
                return
            if error is None:
                result.set_result(value)  # type: ignore[arg-type]
            else:
                result.set_exception(error)

        def start() -> None:
            if result.cancelled():
                return
            value: T | None = None
            error: BaseException | None = None
            try:
                value = func(*args)
            except Exception as failure:  # noqa: BLE001 - it is for the code that awaits the job
                error = failure
            self.call_later(self._draw_delay(), finish, value, error)

        self.call_later(self._draw_delay(), start)
        return result

    def _draw_delay(self) -> float:
        return self._random.uniform(0, self._jitter) if self._jitter else 0.0

    def set_default_executor(self, executor: Any) -> None:
        """Ignore: jobs run on the loop."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Do nothing: there is no executor."""

    def _finalize_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        self._generators.discard(generator)
        if not self._closed:
            self.create_task(generator.aclose())

    async def shutdown_asyncgens(self) -> None:
        for generator in list(self._generators):
            await generator.aclose()

    # Failures

    def set_exception_handler(self, handler: Any) -> None:
        self._exception_handler = handler

    def get_exception_handler(self) -> Any:
        return self._exception_handler

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.failures.append(context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._exception_handler is None:
            self.default_exception_handler(context)
        else:
            self._exception_handler(self, context)

    # Connections

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: ProtocolFactory,
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: Any = None,
        sock: Any = None,
        start_serving: bool = True,
        **options: Any,
    ) -> asyncio.AbstractServer:
        """Listen on the simulated network; options of real sockets (backlog, reuse) are ignored."""
        connector = self._connector(ssl, sock)
        server = connector.listen(protocol_factory, host or "", port or 0)
        if start_serving:
            await server.start_serving()
        return server

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: ProtocolFactory,
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: Any = None,
        sock: Any = None,
        **options: Any,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect through the simulated network; options of real sockets are ignored."""
        return await self._connector(ssl, sock).connect(protocol_factory, host or "", port or 0)

    async def getaddrinfo(  # type: ignore[override]
        self, host: str | None, port: int | None, **options: Any
    ) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        """Resolve every name to itself."""
        address = (host or "", port or 0)
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address)]

    def _connector(self, ssl: Any, sock: Any) -> Connector:
        if ssl is not None or sock is not None:
            raise InvalidValueError("the simulated network has neither TLS nor real sockets")
        if self.network is None:
            raise InvalidValueError("this loop has no network: set loop.network")
        return self.network


def bury(task: asyncio.Task[Any]) -> None:
    """Close a task that will never run again, quietly: its `finally` blocks may find nothing."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    coroutine = task.get_coro()
    try:
        if coroutine is not None:
            coroutine.close()
    except Exception:  # noqa: BLE001 - the simulation is over: there is nobody left to notify
        pass


def _place(task: asyncio.Task[Any]) -> str:
    """Return where a task is waiting, as `function:line`."""
    frames = task.get_stack(limit=1)
    if not frames:
        return "?"
    return f"{frames[-1].f_code.co_qualname}:{frames[-1].f_lineno}"
