"""Runs the workers of one machine: starts, watches and stops them, and serves them a tree.

`Crew` decides; this does it: processes, timers, the tree's socket, and what operators read. Workers
that lose their supervisor stop by themselves, in a controlled shutdown as far as that is possible.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.coordination.embedded import EmbeddedStore
from barnabas.coordination.socket.server import TreeServer
from barnabas.logging.formats import PLAIN
from barnabas.model.errors import ConfigError, StorageError
from barnabas.workers.channel import InSync, Orders, Ready, Report
from barnabas.workers.child import Child
from barnabas.workers.crew import Action, Crew, GiveUpRolling, Kill, Leave, Rolled, Start
from barnabas.workers.directories import check_for_workers
from barnabas.workers.log_lines import LineCopier
from barnabas.workers.plan import Ports, WorkerPlan

if TYPE_CHECKING:
    from barnabas.workers.metrics_listener import WorkersMetricsListener

logger = logging.getLogger("barnabas.workers")

COORDINATION_FILE = "coordination.sqlite"
SOCKET_FILE = "coordination.sock"
SOCKET_PATH_MAX = 100
"""Longest path of a socket, a few bytes below what all systems allow."""
STANDARD_ERROR = 2


@dataclass(frozen=True)
class Serving:
    """What a worker that is ready has reported."""

    broker_id: int
    ready: Ready


class Supervisor:
    """The workers of this process."""

    def __init__(
        self,
        plan: WorkerPlan,
        *,
        log_level: str,
        read_plan: Callable[[], WorkerPlan],
        on_ready: Callable[[list[Serving]], object],
        on_rolled: Callable[[], object],
    ) -> None:
        """Run what `plan` says; a rolling restart asks `read_plan` for the next one.

        `on_ready` is called once, when all workers serve for the first time, and `on_rolled` after
        each attempt of a rolling restart.
        """
        plan.check()
        check_for_workers(plan.options.log_directories, plan.count)
        self.plan = plan
        self.crew = Crew(plan.count)
        self.serving: dict[int, Serving] = {}
        """The workers that serve, by number."""
        self._log_level = log_level
        self._read_plan = read_plan
        self._on_ready = on_ready
        self._on_rolled = on_rolled
        self._ports: dict[int, Ports] = {}
        self._children: dict[int, Child] = {}
        self._runs: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._turns = threading.Lock()
        self._tree: TreeServer | None = None
        self._metrics: WorkersMetricsListener | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._done = asyncio.Event()
        self._announced = False

    async def run(self) -> None:
        """Run the workers until all have left; raise the reason if that was not as asked."""
        self._loop = asyncio.get_running_loop()
        try:
            if self.plan.has_tree:
                await self._serve_tree()
            if self.plan.options.metrics_address is not None:
                await self._serve_metrics()
            self._perform(self.crew.start(self._loop.time()))
            await self._done.wait()
        finally:
            if self._timer is not None:
                self._timer.cancel()
            for child in self._children.values():
                child.kill()  # none is left, unless this is the way out of a failure
            await asyncio.gather(*self._runs, return_exceptions=True)
            if self._metrics is not None:
                await self._metrics.close()
            if self._tree is not None:
                await self._tree.stop()
            if self._temporary is not None:
                self._temporary.cleanup()
        self._raise_failures()

    def stop(self) -> None:
        """Have all workers leave in turn."""
        self._perform(self.crew.stop(self._loop.time()))

    def roll(self) -> None:
        """Restart all workers in turn, with the options as they are now."""
        try:
            plan = self._next_plan()
        except ConfigError as failure:
            logger.error("rolling restart not started: %s", failure)
            self._on_rolled()
            return
        self.plan = plan
        logger.info("rolling restart of %d workers", plan.count)
        self._perform(self.crew.roll(self._loop.time()))

    def _next_plan(self) -> WorkerPlan:
        if not self.crew.was_ready or self.crew.is_stopping:
            raise ConfigError("the workers are starting or stopping")
        plan = self._read_plan()
        plan.check()
        for name, now, then in (
            ("barnabas.workers", self.plan.count, plan.count),
            ("log.dirs", self.plan.options.log_directories, plan.options.log_directories),
            (
                "zookeeper.connect",
                self.plan.options.zookeeper_connect,
                plan.options.zookeeper_connect,
            ),
        ):
            if now != then:
                raise ConfigError(f"{name}={then}: a change from {now} needs a stop and a start")
        return plan

    # What is served

    async def _serve_metrics(self) -> None:
        # Imported here: without metrics, none of it need be in memory.
        from barnabas.workers.metrics_listener import WorkersMetricsListener

        self._metrics = WorkersMetricsListener(self._metrics_ports, self._hindrance)
        await self._metrics.configure(self.plan.options)

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        """Return where the metrics of all workers are served; None if they are not."""
        return None if self._metrics is None else self._metrics.address

    def _metrics_ports(self) -> dict[int, int]:
        found = ((number, each.ready.metrics_port) for number, each in self.serving.items())
        return {number: port for number, port in found if port is not None}

    def _hindrance(self) -> str | None:
        """Return why not all workers serve clients; None if they do."""
        missing = [number for number in self.plan.numbers if number not in self.serving]
        return "; ".join(f"worker {n} is {self.crew.state_of(n).value}" for n in missing) or None

    async def _serve_tree(self) -> None:
        store, path = self._tree_files()
        self._tree = TreeServer(store, path)
        await self._tree.start()

    def _tree_files(self) -> tuple[EmbeddedStore, Path]:
        """Return the tree in the first data directory, and where to put its socket."""
        directory = Path(self.plan.options.log_directories[0])
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as failure:
            raise StorageError(f"cannot create {directory}: {failure}") from failure
        path = directory.absolute() / SOCKET_FILE
        if len(os.fsencode(path)) > SOCKET_PATH_MAX:
            self._temporary = tempfile.TemporaryDirectory(prefix="barnabas-")
            path = Path(self._temporary.name) / SOCKET_FILE
        return EmbeddedStore(directory / COORDINATION_FILE), path

    # What the crew has decided

    def _perform(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Start(number):
                    self._start(number)
                case Leave(number):
                    logger.info("worker %d: leaving", number)
                    self._children[number].terminate()
                case Kill(number):
                    logger.error("worker %d: killed, as it did not leave in time", number)
                    self._children[number].kill()
                case Rolled():
                    logger.info("rolling restart completed")
                    self._on_rolled()
                case GiveUpRolling(numbers):
                    logger.error(
                        "rolling restart given up: workers not in sync: %s; send SIGHUP again "
                        "when they are",
                        ", ".join(map(str, numbers)),
                    )
                    self._on_rolled()
        if self._timer is not None:
            self._timer.cancel()
        due_s = self.crew.due_s
        self._timer = None if due_s is None else self._loop.call_at(due_s, self._tick)
        if self.crew.is_done:
            self._done.set()

    def _tick(self) -> None:
        self._timer = None
        self._perform(self.crew.tick(self._loop.time()))

    def _start(self, number: int) -> None:
        plan = self.plan
        mark = b""
        if plan.options.barnabas_log_format == PLAIN:
            mark = b"[%d] " % plan.broker_id(number)
        tree = None if self._tree is None else str(self._tree.path)
        orders = Orders(number, plan.values_of(number, self._ports.get(number)), tree)
        copier = LineCopier(STANDARD_ERROR, mark, self._turns)
        child = Child(orders, self._log_level, copier, lambda report: self._take(number, report))
        self._children[number] = child
        run = self._loop.create_task(self._run(number, child))
        self._runs.add(run)
        run.add_done_callback(self._runs.discard)

    async def _run(self, number: int, child: Child) -> None:
        """Run a worker's process from its start to its end."""
        try:
            code = await child.run()
        except OSError as failure:
            logger.error("worker %d: could not be started: %s", number, failure)
            code = 1
        self._ended(number, code)

    def _take(self, number: int, report: Report) -> None:
        now_s = self._loop.time()
        match report:
            case Ready():
                self._ports[number] = report.ports
                self.serving[number] = Serving(self.plan.broker_id(number), report)
                self._perform(self.crew.ready(number, now_s))
                if self.crew.was_ready and not self._announced:
                    self._announced = True
                    self._on_ready([self.serving[each] for each in self.plan.numbers])
            case InSync():
                self._perform(self.crew.in_sync(number, now_s))

    def _ended(self, number: int, code: int) -> None:
        self.serving.pop(number, None)
        del self._children[number]
        now_s = self._loop.time()
        actions = self.crew.ended(number, code, now_s)
        due_s = self.crew.restart_s(number)
        if due_s is not None:
            logger.error(
                "worker %d: ended with %s, restarted in %.1f s",
                number,
                _how(code),
                max(0.0, due_s - now_s),
            )
        self._perform(actions)

    def _raise_failures(self) -> None:
        crew = self.crew
        if crew.failed is not None:
            raise ConfigError(f"worker {crew.failed} could not start; its last lines say why")
        if crew.unclean:
            numbers = ", ".join(f"{number} ({_how(code)})" for number, code in crew.unclean.items())
            raise StorageError(
                f"workers that did not stop cleanly: {numbers}; the next start checks their logs"
            )


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
