"""A turnstile before the data plane: requests of clients pass a few at a time.

The broker has one loop, and each of its turns serves every connection that has something to say.
A hundred of them with a large produce each make turns of a hundred milliseconds, and what the
controller says waits for several of these. So where there is a control plane, data requests pass
for at most some milliseconds per turn, and one per turn while the controller is being heard; the
others wait, in the order in which they came. None waits for ever: the controller's word may itself
have to wait for the coordination service.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.connection import Connection, Dispatcher

TURN_S_MAX = 0.004


class Turnstile:
    """Hands frames on to a dispatcher, so many per turn of the loop as the time allows.

    A frame stays valid while it waits: its connection takes it for one in handling.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        is_controller_heard: Callable[[], bool],
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._dispatcher = dispatcher
        self._is_controller_heard = is_controller_heard
        self._clock = clock
        self._line: deque[tuple[Connection, memoryview]] = deque()
        self._in_turn = False
        self._turn_ends = 0.0

    @property
    def waiting(self) -> int:
        """Return how many requests wait for their turn."""
        return len(self._line)

    def dispatch(self, connection: Connection, frame: memoryview) -> None:
        """Let a request pass, or have it wait behind those that came before."""
        if self._line or not self._may_pass():
            self._line.append((connection, frame))
        else:
            self._dispatcher.dispatch(connection, frame)

    def release(self) -> None:
        """Let all pass that wait: the broker stops, and answers what it has taken."""
        while self._line:
            self._pass_first()

    def _may_pass(self) -> bool:
        """Return whether this turn has time left; the first request of a turn always passes."""
        if self._in_turn:
            return self._clock() < self._turn_ends
        self._in_turn = True
        self._turn_ends = self._clock() + (0.0 if self._is_controller_heard() else TURN_S_MAX)
        asyncio.get_running_loop().call_soon(self._next_turn)
        return True

    def _next_turn(self) -> None:
        self._in_turn = False
        while self._line and self._may_pass():
            self._pass_first()

    def _pass_first(self) -> None:
        connection, frame = self._line.popleft()
        if connection.is_open:
            self._dispatcher.dispatch(connection, frame)
