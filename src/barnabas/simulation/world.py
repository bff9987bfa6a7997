"""A world under one seed: hosts with clocks, disks and random sources, a network, and a loop.

    with World(seed=7) as world:
        for name in ("one", "two"):
            world.start(name, lambda host: serve(host))          # a coroutine per host
        world.run(scenario(world), until=60)                      # virtual seconds

A host runs one process at a time. `pause` stops it like SIGSTOP, `kill` ends it like SIGKILL,
`crash` cuts the power: what was not flushed is lost. `restart` starts a new process on the same
disk. The world also has a coordination service, which hosts reach through the network like anything
else.

Equal seeds give equal runs: `world.trace.digest()` is the same, in this interpreter and in any
other.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
from collections.abc import Callable, Coroutine
from random import Random
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.model.errors import BarnabasError
from barnabas.simulation.disk import SimulatedDisk
from barnabas.simulation.loop import SimulatedLoop, SimulationDeadlock, bury
from barnabas.simulation.network import DRIVER, Network
from barnabas.simulation.process import CURRENT, Process

T = TypeVar("T")

START_MS = 1_700_000_000_000
"""The wall clock at the start of a world."""

Program: TypeAlias = Callable[["Host"], Coroutine[Any, Any, Any]]
"""The main coroutine of a process, given its host."""

COORDINATION = "coordination"
"""The host of the coordination service."""


class SimulationFailure(BarnabasError):
    """An unhandled exception (its cause), or a run that did not end in time."""


class Host:
    """One simulated machine; its disk, clock and random source outlive its processes."""

    def __init__(self, world: World, name: str, clock_skew_ms: int) -> None:
        self.name = name
        self.clock_skew_ms = clock_skew_ms
        self.random = Random(f"{world.seed}/{name}")
        self.disk = SimulatedDisk(Random(f"{world.seed}/{name}/disk"), self.now_ms)
        self.process: Process | None = None
        self.program: Program | None = None
        """The program of the current or last process."""
        self._world = world

    def now_ms(self) -> int:
        """Return the host's wall clock: the virtual time plus its own error."""
        return self._world.now_ms() + self.clock_skew_ms

    def coordination(self, timeout_ms: int = 6000) -> MemoryCoordination:
        """Return a session with the world's coordination service, for the running process."""
        network = self._world.network
        there = network.channel(self.name, COORDINATION, self._world.context)
        back = network.channel(COORDINATION, self.name, contextvars.copy_context())
        return MemoryCoordination(
            self._world.coordination_store,
            timeout_ms=timeout_ms,
            to_store=there.send,
            to_session=back.send,
        )


class World:
    """A whole simulation."""

    def __init__(
        self,
        seed: int,
        *,
        latency_ms: tuple[float, float] = (0.1, 2.0),
        jitter_ms: float = 0.5,
        clock_skew_ms_max: int = 0,
    ) -> None:
        """Create an empty world.

        `latency_ms` limits the latency of messages between hosts, `jitter_ms` the duration of
        executor jobs; the clocks of hosts are off by up to `clock_skew_ms_max` either way.
        """
        self.seed = seed
        self.random = Random(f"{seed}/world")
        self.clock_skew_ms_max = clock_skew_ms_max
        # Abstract methods are those that no simulation needs: signals, real sockets.
        self.loop = SimulatedLoop(seed, jitter_ms=jitter_ms)  # type: ignore[abstract]
        self.network = Network(self.loop, seed, latency_ms)
        self.trace = self.loop.trace
        self.hosts: dict[str, Host] = {}
        self.context = contextvars.Context()
        """The context of code that belongs to no host."""
        self.coordination_store = self.context.run(MemoryStore)
        self.network.add_host(COORDINATION)
        self._dead: list[Process] = []
        self._mains: list[asyncio.Task[Any]] = []

    def __enter__(self) -> World:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def now_ms(self) -> int:
        """Return the true wall clock."""
        return START_MS + round(self.loop.time() * 1000)

    # Hosts

    def host(self, name: str) -> Host:
        """Return the host of that name, created on first use."""
        if name not in self.hosts:
            assert name not in (DRIVER, COORDINATION), f"{name} is taken"
            skew = Random(f"{self.seed}/{name}/clock").randint(
                -self.clock_skew_ms_max, self.clock_skew_ms_max
            )
            self.hosts[name] = Host(self, name, skew)
            self.network.add_host(name)
        return self.hosts[name]

    def start(
        self, name: str, program: Callable[[Host], Coroutine[Any, Any, T]]
    ) -> asyncio.Task[T]:
        """Start a process on a host that has none; return its main task.

        If the program fails, the run fails, unless the task was awaited.
        """
        host = self.host(name)
        assert host.process is None, f"{name} is running"
        self.trace.note("start", name)
        self.network.set_down(name, False)
        host.program = program
        host.process = Process(name)
        context = host.process.context()
        coroutine = context.run(program, host)
        main = self.loop.create_task(coroutine, name=f"{name}/main", context=context)
        self._mains.append(main)
        return main

    def restart(self, name: str) -> asyncio.Task[Any]:
        """Start a new process on a killed or crashed host, with the last program."""
        program = self.hosts[name].program
        assert program is not None, f"{name} has never run"
        return self.start(name, program)

    def kill(self, name: str) -> None:
        """Kill the host's process; its disk keeps every byte that was written."""
        self.trace.note("kill", name)
        self._end(name)
        self.hosts[name].disk.kill()

    def crash(self, name: str, *, silent: bool = False) -> None:
        """Cut the host's power: the process ends and the disk loses what was not flushed.

        Its peers get a reset immediately, or with `silent` only when the host is back: until then
        what they send is lost.
        """
        self.trace.note("crash", name, silent)
        if silent:
            self.network.set_down(name, True)
        self._end(name)
        self.hosts[name].disk.crash()

    def _end(self, name: str) -> None:
        host = self.hosts[name]
        assert host.process is not None, f"{name} is not running"
        process, host.process = host.process, None
        self.loop.kill(process)
        self.network.end_process(process)
        self._dead.append(process)

    def pause(self, name: str) -> None:
        """Pause the host's process; time continues without it."""
        self.trace.note("pause", name)
        process = self.hosts[name].process
        assert process is not None, f"{name} is not running"
        process.paused = True

    def resume(self, name: str) -> None:
        """Resume a paused process."""
        self.trace.note("resume", name)
        process = self.hosts[name].process
        assert process is not None, f"{name} is not running"
        self.loop.resume(process)

    # Running

    def run(self, scenario: Coroutine[Any, Any, T], until: float = math.inf) -> T:
        """Run the world until the scenario is done, and return its result.

        Raises what the scenario raised; SimulationFailure if another task or callback failed
        meanwhile, or if the scenario was not done at virtual time `until`; SimulationDeadlock if
        nothing can ever happen again.
        """
        main = self.loop.create_task(scenario, name="scenario", context=self.context.copy())
        if until < math.inf:
            self.loop.call_at(until, main.cancel, context=self.context)
        try:
            result: T = self.loop.run_until_complete(main)
        except (asyncio.CancelledError, SimulationDeadlock) as ended:
            self._raise_failure()
            if isinstance(ended, SimulationDeadlock):
                raise
            late = f"seed {self.seed}: the scenario was not done at {self.loop.time():.3f} s"
            raise SimulationFailure(late) from None
        self._raise_failure()
        return result

    def _raise_failure(self) -> None:
        """Raise the first unhandled exception, if there is one."""
        mains, self._mains = self._mains, []
        for main in mains:
            if not main.done():
                self._mains.append(main)
            # Asyncio's own flag for an exception that was never retrieved.
            elif main._log_traceback and not main.cancelled():
                message = f"{main.get_name()} failed"
                self.loop.failures.append({"message": message, "exception": main.exception()})
        if self.loop.failures:
            first = self.loop.failures[0]
            self.loop.failures.clear()
            raise SimulationFailure(f"seed {self.seed}: {first.get('message')}") from first.get(
                "exception"
            )

    def close(self) -> None:
        """End everything; pending tasks are closed."""
        for name, host in self.hosts.items():
            if host.process is not None:
                self._end(name)
        self.loop.close()
        for process in self._dead:
            for task in list(process.tasks):
                bury(task)


def current_host() -> str:
    """Return the name of the host of the running code."""
    process = CURRENT.get()
    return DRIVER if process is None else process.host
