"""Handshakes in turns: a crowd of new TLS connections must not hold up those that are open.

A handshake costs half a millisecond of the event loop, and a broker that was just restarted may
get a thousand of them in one turn. So only a few steps are made per turn; the others wait, unread,
for the next ones.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

STEPS_MAX = 4
"""How many steps of handshakes are made in one turn of the loop."""


class Handshakes:
    """Makes a few steps per turn of the loop, in the order in which they were asked for."""

    def __init__(self, steps_max: int = STEPS_MAX) -> None:
        self._steps_max = steps_max
        self._left = steps_max
        self._waiting: deque[Callable[[], None]] = deque()
        self._turning = False

    @property
    def waiting(self) -> int:
        """Return how many steps wait for a later turn."""
        return len(self._waiting)

    def take(self, step: Callable[[], None]) -> None:
        """Make a step now or, if this turn has made enough, in a later one."""
        if self._left and not self._waiting:
            self._left -= 1
            self._next_turn_follows()
            step()
        else:
            self._waiting.append(step)

    def _next_turn_follows(self) -> None:
        if not self._turning:
            self._turning = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._turning = False
        self._left = self._steps_max
        while self._left and self._waiting:
            self._left -= 1
            self._next_turn_follows()
            self._waiting.popleft()()
