"""A turnstile in front of the data plane: requests of clients pass a few at a time.

The broker has one event loop, and each of its turns serves every connection that has sent
something. A hundred connections with a large produce each make turns of a hundred milliseconds,
and a request of the controller needs several turns. So where there is a control plane, data
requests pass for at most a few milliseconds per turn, and only one passes per turn while a request
of the controller is being handled; the others wait in the order in which they arrived. At least
one always passes: the controller's request may itself wait for the coordination service.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from barnabas.broker.network.connection import Connection

TURN_S_MAX = 0.004


class DispatcherBehind(Protocol):
    """What a turnstile passes frames on to."""

    def dispatch(self, connection: Connection, frame: memoryview, queued_s: float = 0.0) -> None:
        """Handle one frame that has waited for its turn for some seconds."""


class Turnstile:
    """Passes frames on to a dispatcher, as many per turn of the loop as there is time for.

    A frame stays valid while it waits: to its connection it is in handling already.
    """

    def __init__(
        self,
        dispatcher: DispatcherBehind,
        is_control_busy: Callable[[], bool],
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._dispatcher = dispatcher
        self._is_control_busy = is_control_busy
        self._clock = clock
        self._line: deque[tuple[Connection, memoryview, float]] = deque()
        """The frames that wait, and since when."""
        self._in_turn = False
        self._turn_ends = 0.0

    @property
    def waiting(self) -> int:
        """Return how many requests wait for their turn."""
        return len(self._line)

    def dispatch(self, connection: Connection, frame: memoryview) -> None:
        """Pass a request on, or queue it behind those that arrived before."""
        if self._line or not self._may_pass():
            self._line.append((connection, frame, self._clock()))
        else:
            self._dispatcher.dispatch(connection, frame)

    def release(self) -> None:
        """Pass on everything that waits: a broker that stops answers what it has received."""
        while self._line:
            self._pass_first()

    def _may_pass(self) -> bool:
        """Return whether this turn has time left; the first request of a turn always passes."""
        if self._in_turn:
            return self._clock() < self._turn_ends
        self._in_turn = True
        self._turn_ends = self._clock() + (0.0 if self._is_control_busy() else TURN_S_MAX)
        asyncio.get_running_loop().call_soon(self._next_turn)
        return True

    def _next_turn(self) -> None:
        self._in_turn = False
        while self._line and self._may_pass():
            self._pass_first()

    def _pass_first(self) -> None:
        connection, frame, since = self._line.popleft()
        if connection.is_open:
            self._dispatcher.dispatch(connection, frame, self._clock() - since)
