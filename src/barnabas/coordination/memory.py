"""Coordination in memory, for simulations and quick tests: nothing outlives the store object.

    store = MemoryStore()
    one, two = MemoryCoordination(store), MemoryCoordination(store, timeout_ms=6000)

Sessions with a timeout expire by the clock of the loop that runs them, so on a simulated loop a
paused or disconnected host loses its session at a time that the seed decides.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Sequence

from barnabas.coordination.session import StoreSession
from barnabas.coordination.store import Settled, Store, Subscriber
from barnabas.coordination.tree import Change


class MemoryStore(Store):
    """A tree in memory; every change is settled immediately."""

    def __init__(self) -> None:
        super().__init__()
        # The expiry timer belongs to the service, not to the session that happened to start it: a
        # simulation that pauses a session's host must not pause the clock that expires it.
        self._context = contextvars.copy_context()
        self._timer: asyncio.TimerHandle | None = None
        self.is_away = False
        """Whether no session expires, as in an ensemble without a majority."""

    async def open(self) -> None:
        """A store in memory is always open."""

    async def release(self) -> None:
        """A store in memory has nothing to release."""

    def now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    def settle(self, changes: Sequence[Change], then: Settled) -> None:
        then(None)

    def begin(self, subscriber: Subscriber, timeout_ms: int | None) -> int:
        session_id = super().begin(subscriber, timeout_ms)
        if timeout_ms is not None:
            self._await_expiry()
        return session_id

    def _await_expiry(self) -> None:
        """Keep one timer, at the earliest expiry; after heartbeats it may find nothing due."""
        due_ms = self.tree.next_expiry_ms()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due_ms is not None and not self.is_away:
            loop = asyncio.get_running_loop()
            # One millisecond late rather than early: the clock in milliseconds is rounded down.
            when = (due_ms + 1) / 1000
            self._timer = loop.call_at(when, self._expire_due, context=self._context)

    def go_away(self) -> None:
        """Expire no session until `come_back`; cutting off clients is up to the caller."""
        self.is_away = True
        self._await_expiry()

    def come_back(self) -> None:
        """Give every session its full timeout again, as a new ensemble leader does."""
        self.is_away = False
        for session_id in self.tree.sessions:
            self.tree.touch(session_id, self.now_ms())
        self._await_expiry()

    def _expire_due(self) -> None:
        for session_id in self.tree.expired(self.now_ms()):
            self.expire(session_id)
        self._await_expiry()


class MemoryCoordination(StoreSession):
    """A session with a MemoryStore."""
