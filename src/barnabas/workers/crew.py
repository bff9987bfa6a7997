"""Decides which worker to start, to stop and to wait for; told what happened, and when.

    crew = Crew(3)
    crew.start(now_s)           # [Start(1), Start(2), Start(3)]
    crew.ended(2, -9, now_s)    # []: it is started again at `due_s`, by `tick`

A worker that ends by itself is started again, the sooner the longer it had served. But if one ends
before all have been ready for the first time, all end: what is wrong is the start.

On `stop` they leave one after the other, the last first, so that each can hand over what it leads.
`roll` stops and starts them again in turn; the next one leaves when all are in sync again.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, TypeAlias

RESTART_S_MIN = 0.1
RESTART_S_MAX = 10.0
STABLE_S = 30.0
"""How long a worker must have been ready for its earlier failures not to count."""
LEAVE_S_MAX = 60.0
"""After how long a worker that does not leave is killed."""
IN_SYNC_S_MAX = 300.0
"""How long a rolling restart waits for replicas to catch up before it is given up."""


class Start(NamedTuple):
    """Start this worker."""

    number: int


class Leave(NamedTuple):
    """Ask this worker for a controlled shutdown."""

    number: int


class Kill(NamedTuple):
    """Kill this worker: it did not leave in time."""

    number: int


class GiveUpRolling(NamedTuple):
    """Report that a rolling restart has ended early: these workers are not in sync."""

    numbers: tuple[int, ...]


class Rolled(NamedTuple):
    """Report that a rolling restart is completed: all have been restarted, and are in sync."""


Action: TypeAlias = Start | Leave | Kill | GiveUpRolling | Rolled


class State(Enum):
    """Where a worker is between its start and its end."""

    WAITING = "waiting to be restarted"
    STARTING = "starting"
    READY = "ready"
    IN_SYNC = "in sync"
    LEAVING = "leaving"
    GONE = "gone"


class _Worker:
    """One worker; `due_s` is when something must happen to it."""

    __slots__ = ("due_s", "failures", "ready_s", "state")

    def __init__(self) -> None:
        self.state = State.STARTING
        self.failures = 0
        self.ready_s: float | None = None
        self.due_s: float | None = None


class Crew:
    """The workers of one machine."""

    def __init__(self, count: int) -> None:
        self._workers = {number: _Worker() for number in range(1, count + 1)}
        self._rolling: list[int] | None = None
        self._rolling_until_s = 0.0
        self.is_stopping = False
        self.was_ready = False
        """Whether all workers have been ready at the same time."""
        self.failed: int | None = None
        """The worker whose start failed, so that all ended."""
        self.unclean: dict[int, int] = {}
        """Exit codes of workers that did not end cleanly when they were asked to."""

    @property
    def is_done(self) -> bool:
        """Return whether all have ended for good."""
        return self.is_stopping and self._all(State.GONE)

    @property
    def due_s(self) -> float | None:
        """Return when to call `tick`; None if there is nothing to wait for."""
        times = [w.due_s for w in self._workers.values() if w.due_s is not None]
        if self._rolling is not None:
            times.append(self._rolling_until_s)
        return min(times, default=None)

    def state_of(self, number: int) -> State:
        """Return the state of a worker."""
        return self._workers[number].state

    def restart_s(self, number: int) -> float | None:
        """Return when a worker that has ended is started again; None if it is not waiting."""
        worker = self._workers[number]
        return worker.due_s if worker.state is State.WAITING else None

    # What happens

    def start(self, now_s: float) -> list[Action]:
        """Start all."""
        return [Start(number) for number in self._workers]

    def ready(self, number: int, now_s: float) -> list[Action]:
        """Handle that a worker serves."""
        worker = self._workers[number]
        if worker.state is State.STARTING:
            worker.state, worker.ready_s = State.READY, now_s
            if self._all(State.READY, State.IN_SYNC):
                self.was_ready = True
        return []

    def in_sync(self, number: int, now_s: float) -> list[Action]:
        """Handle that all replicas of a worker are in sync."""
        worker = self._workers[number]
        if worker.state is State.READY:
            worker.state = State.IN_SYNC
        return self._roll_on(now_s)

    def ended(self, number: int, code: int, now_s: float) -> list[Action]:
        """Handle that a worker's process has ended."""
        worker = self._workers[number]
        was_asked = worker.state is State.LEAVING
        worker.due_s = None
        if self.is_stopping:
            worker.state = State.GONE
            if code and worker.ready_s is not None:
                self.unclean[number] = code
            return self._next_leaves(now_s)
        if was_asked:  # in a rolling restart
            worker.state, worker.ready_s = State.STARTING, None
            return [Start(number)]
        if not self.was_ready:
            worker.state, self.failed = State.GONE, number
            return self.stop(now_s)
        if worker.ready_s is not None and now_s - worker.ready_s >= STABLE_S:
            worker.failures = 0
        worker.state, worker.ready_s = State.WAITING, None
        worker.due_s = now_s + min(RESTART_S_MIN * 2**worker.failures, RESTART_S_MAX)
        worker.failures = min(worker.failures + 1, 30)
        return []

    def stop(self, now_s: float) -> list[Action]:
        """Have all leave, for good."""
        if self.is_stopping:
            return []
        self.is_stopping = True
        self._rolling = None
        actions: list[Action] = []
        for number, worker in self._workers.items():
            if worker.state is State.WAITING:
                worker.state, worker.due_s = State.GONE, None
            elif worker.state is State.STARTING or (
                self.failed is not None and worker.state is not State.GONE
            ):
                actions.append(self._leave(number, now_s))  # it has nothing to hand over
        return actions + self._next_leaves(now_s)

    def roll(self, now_s: float) -> list[Action]:
        """Restart all in turn; those that were restarted in an earlier round are again."""
        if self.is_stopping or not self.was_ready:
            return []
        self._rolling = list(self._workers)
        self._rolling_until_s = now_s + IN_SYNC_S_MAX
        return self._roll_on(now_s)

    def tick(self, now_s: float) -> list[Action]:
        """Do what is due."""
        actions: list[Action] = []
        for number, worker in self._workers.items():
            if worker.due_s is None or worker.due_s > now_s:
                continue
            worker.due_s = None
            if worker.state is State.WAITING:
                worker.state = State.STARTING
                actions.append(Start(number))
            elif worker.state is State.LEAVING:
                actions.append(Kill(number))
        if self._rolling is not None and self._rolling_until_s <= now_s:
            self._rolling = None
            behind = (n for n, w in self._workers.items() if w.state is not State.IN_SYNC)
            actions.append(GiveUpRolling(tuple(behind)))
        return actions

    # Inside

    def _all(self, *states: State) -> bool:
        return all(worker.state in states for worker in self._workers.values())

    def _leave(self, number: int, now_s: float) -> Leave:
        worker = self._workers[number]
        worker.state, worker.due_s = State.LEAVING, now_s + LEAVE_S_MAX
        return Leave(number)

    def _next_leaves(self, now_s: float) -> list[Action]:
        """Have the last worker that still serves leave, when no other one is leaving."""
        if any(worker.state is State.LEAVING for worker in self._workers.values()):
            return []
        left = [n for n, w in self._workers.items() if w.state is not State.GONE]
        return [self._leave(left[-1], now_s)] if left else []

    def _roll_on(self, now_s: float) -> list[Action]:
        if self._rolling is None or not self._all(State.IN_SYNC):
            return []
        if not self._rolling:
            self._rolling = None
            return [Rolled()]
        self._rolling_until_s = now_s + IN_SYNC_S_MAX
        return [self._leave(self._rolling.pop(0), now_s)]
