"""Whose work a callback is: one life of the software on a host, which can be paused or end.

All hosts of a simulation share one event loop. What belongs to which is told by the context in
which callbacks and tasks run: code started for a process carries it in `CURRENT`, and so does all
that this code schedules. The loop looks there before each step: the steps of a paused process
wait, those of a dead one are forgotten.
"""

from __future__ import annotations

import contextvars
from asyncio import Handle, Task
from collections import deque
from typing import Any


class Process:
    """One life of the software on a host; a restart makes a new one."""

    __slots__ = ("dead", "host", "parked", "paused", "tasks")

    def __init__(self, host: str) -> None:
        self.host = host
        self.paused = False
        self.dead = False
        self.parked: deque[Handle] = deque()
        """Steps that came up during a pause, in order."""
        self.tasks: dict[Task[Any], None] = {}
        """Tasks that have not ended; when the process dies they are kept, so that none is finalised
        and runs its `finally` blocks: a crashed program does not clean up."""

    def context(self) -> contextvars.Context:
        """Return a fresh context whose code belongs to this process."""
        context = contextvars.Context()
        context.run(CURRENT.set, self)
        return context


CURRENT: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)
"""The process that the running code belongs to; None is the world itself: the test, the network."""
