"""Coordination in memory, for simulations and quick tests: nothing outlives the store object.

    store = MemoryStore()
    one, two = MemoryCoordination(store), MemoryCoordination(store, timeout_ms=6000)

Sessions with a timeout expire by the clock of the loop that runs them, so on a simulated loop a
paused or disconnected host loses its session at a time that the seed decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.coordination.session import StoreSession
from barnabas.coordination.store import Settled, Store
from barnabas.coordination.tree import Change


class MemoryStore(Store):
    """A tree in memory; every change is settled immediately."""

    async def open(self) -> None:
        """A store in memory is always open."""

    async def release(self) -> None:
        """A store in memory has nothing to release."""

    def settle(self, changes: Sequence[Change], then: Settled) -> None:
        then(None)


class MemoryCoordination(StoreSession):
    """A session with a MemoryStore."""
