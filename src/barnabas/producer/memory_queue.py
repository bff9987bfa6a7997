"""Callers that wait for a producer's memory: first come, first served.

While one waits, no other caller gets memory (`BufferPool.waiting`), so freed memory adds up until
the first in the queue has enough, however large its record is. Only the first one retries, with
`in_turn`; when it leaves, the next one retries immediately.

    with MemoryTurn(queue, bell.set, size) as turn:
        while accumulator.append(..., in_turn=turn.held) is refused for want of memory:
            turn.ask()
            ...  # wait for the bell, and clear it

Callers come and leave in any thread; memory is freed on the producer's loop.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from barnabas.producer.accumulator import Accumulator

_PART = 8
"""The minimum share of all memory to wait for: it saves a thread switch per batch."""


class MemoryQueue:
    """The turns of one producer's callers, in the order in which they came."""

    def __init__(self, accumulator: Accumulator) -> None:
        self._accumulator = accumulator
        self._turns: deque[MemoryTurn] = deque()
        # Reentrant: a signal handler may send a record while its thread is in here.
        self._lock = threading.RLock()

    def enter(self, turn: MemoryTurn) -> None:
        """Add a turn at the end; the first one is rung at once."""
        with self._lock:
            self._turns.append(turn)
            self._accumulator.pool.waiting = True
            if self._turns[0] is turn:
                turn.ring()
        self._accumulator.wake()  # batches that linger are sent now

    def leave(self, turn: MemoryTurn) -> None:
        """Remove a turn; if it was the first, the next one is rung."""
        with self._lock:
            was_first = self._turns[0] is turn
            self._turns.remove(turn)
            self._accumulator.pool.waiting = bool(self._turns)
            if was_first and self._turns:
                self._turns[0].ring()

    def missed(self, size: int) -> int:
        """Return how much must be free before the first turn, which needs `size`, retries."""
        pool = self._accumulator.pool
        free = pool.memory - pool.in_use
        enough = max(size, pool.memory // _PART, pool.batch_size)
        return enough if enough > free else 2 * free

    def freed(self) -> None:
        """Handle freed memory, or a producer that accepts no more records."""
        if not self._turns:
            return
        pool = self._accumulator.pool
        with self._lock:
            free = pool.memory - pool.in_use
            if self._turns and (
                self._accumulator.closed or free == pool.memory or free >= self._turns[0].enough
            ):
                self._turns[0].ring()


class MemoryTurn:
    """One caller's position in the queue, which it takes when it first asks."""

    def __init__(self, queue: MemoryQueue, ring: Callable[[], object], size: int = 0) -> None:
        """Create a turn for a record of about this many bytes (0: unknown).

        `ring` is called, in any thread, whenever the caller should retry, which may fail again.
        """
        self.ring = ring
        self.held = False
        """Whether the caller is in the queue, and may take memory after `ring`."""
        self.enough = 0
        self._queue = queue
        self._size = size

    def ask(self) -> None:
        """Enter the queue or, when the first try in turn has failed, wait for more memory."""
        if self.held:
            self.enough = self._queue.missed(self._size)
        else:
            self.held = True
            self.enough = 0
            self._queue.enter(self)

    def leave(self) -> None:
        """Let the next one have its turn."""
        if self.held:
            self.held = False
            self._queue.leave(self)

    def __enter__(self) -> MemoryTurn:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()
