"""The process a callback belongs to: one run of the software on a host, which can be paused.

All hosts of a simulation share one event loop. The context in which callbacks and tasks run says
which process they belong to: code started for a process carries it in `CURRENT`, and so does
everything that this code schedules. The loop checks it before each step: the steps of a paused
process wait, those of a dead one are dropped.
"""

from __future__ import annotations

import contextvars
from asyncio import Handle, Task
from collections import deque
from typing import Any


class Process:
    """One run of the software on a host; a restart creates a new one."""

    __slots__ = ("dead", "host", "parked", "paused", "tasks")

    def __init__(self, host: str) -> None:
        self.host = host
        self.paused = False
        self.dead = False
        self.parked: deque[Handle] = deque()
        """Steps that became due during a pause, in order."""
        self.tasks: dict[Task[Any], None] = {}
        """Tasks that have not ended; when the process dies they are kept, so that none is finalized
        and runs its `finally` blocks: a crashed program does not clean up."""

    def context(self) -> contextvars.Context:
        """Return a new context whose code belongs to this process."""
        context = contextvars.Context()
        context.run(CURRENT.set, self)
        return context


CURRENT: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)
"""The process of the running code; None for the world itself: the test, the network."""
