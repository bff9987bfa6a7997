"""Purgatory: operations that cannot be completed yet, watched by key and limited by a deadline.

An operation is tried when it arrives, tried again whenever one of its keys is checked, and expires
at its deadline. It completes exactly once, whichever comes first. Code that changes what an
operation may wait for (an append, a high watermark, an ISR, a deletion) calls `check(key)`.

A check during another one of the same purgatory (a response that lets a connection's next request
run, which appends and checks in turn) is not nested: it is queued, and the running one handles it
before it returns. A chain of completions therefore never grows the stack.

Everything is synchronous and single-threaded, so nothing can happen between trying an operation and
watching it, and a completed operation leaves all its watch lists at once: only waiting operations
are kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Hashable, Iterable

from barnabas.timing.wheel import Timer, TimingWheel


class DelayedOperation(ABC):
    """A delayed operation; subclasses decide when to complete it, and respond."""

    __slots__ = ("_keys", "_purgatory", "_timer", "completed")

    def __init__(self) -> None:
        self.completed = False
        self._keys: tuple[Hashable, ...] = ()
        self._timer: Timer | None = None
        self._purgatory: Purgatory | None = None

    @property
    def keys(self) -> tuple[Hashable, ...]:
        """What it is watched under while it waits."""
        return self._keys

    @abstractmethod
    def try_complete(self) -> bool:
        """Return whether the operation can be completed now."""

    @abstractmethod
    def on_complete(self) -> None:
        """Respond; called exactly once, with the state at that time."""

    def on_expire(self) -> None:  # noqa: B027 - most have nothing to do
        """Handle the expiry of the deadline; called just before `on_complete`."""

    def give_way(self) -> None:  # noqa: B027 - most let it wait
        """Handle that the client has sent another request behind this one."""

    def complete(self) -> bool:
        """Complete now, without trying; False if it was already completed or cancelled."""
        if not self.cancel():
            return False
        self.on_complete()
        return True

    def cancel(self) -> bool:
        """Cancel without a response (its connection closed); False if it is already completed."""
        if self.completed:
            return False
        self.completed = True
        if self._purgatory is not None:
            self._purgatory._leave(self)
        return True

    def _expire(self) -> None:
        if self.cancel():
            self.on_expire()
            self.on_complete()


class Purgatory:
    """Watch lists of delayed operations, with a timing wheel that purgatories may share."""

    def __init__(self, name: str, wheel: TimingWheel) -> None:
        self.name = name
        self.wheel = wheel
        self._watchers: dict[Hashable, dict[DelayedOperation, None]] = {}
        self._waiting = 0
        self._checking = False
        self._asked: deque[Hashable] = deque()

    def __len__(self) -> int:
        """Return the number of waiting operations."""
        return self._waiting

    @property
    def watched(self) -> int:
        """Return how often operations are watched: one that waits for three keys counts thrice."""
        return sum(map(len, self._watchers.values()))

    @property
    def key_count(self) -> int:
        """Return the number of watched keys."""
        return len(self._watchers)

    def watch(
        self, operation: DelayedOperation, keys: Iterable[Hashable], deadline_ms: int | None
    ) -> bool:
        """Try the operation; if it must wait, watch it under `keys` until `deadline_ms`.

        Return whether it is completed. Without a deadline it only waits for its keys.
        """
        if operation.completed:
            return True
        if operation.try_complete():
            operation.complete()
            return True
        if operation.completed:  # the attempt may have cancelled it
            return True
        assert operation._purgatory is None, "an operation can be watched only once"
        operation._purgatory = self
        operation._keys = keys = tuple(keys)
        watchers = self._watchers
        for key in keys:
            waiting = watchers.get(key)
            if waiting is None:
                watchers[key] = {operation: None}
            else:
                waiting[operation] = None
        if deadline_ms is not None:
            operation._timer = self.wheel.add(deadline_ms, operation._expire)
        self._waiting += 1
        return False

    def check(self, key: Hashable) -> int:
        """Try every operation that waits for `key`; return how many completed.

        During a check of this purgatory the key is queued for the running one, and 0 is returned.
        """
        if key not in self._watchers:
            return 0
        asked = self._asked
        asked.append(key)
        if self._checking:
            return 0
        self._checking = True
        completed = 0
        try:
            while asked:
                completed += self._try_watchers(asked.popleft())
        finally:
            # If a response failed, the next check handles the remaining keys.
            self._checking = False
        return completed

    def give_up(self) -> None:
        """Expire all waiting operations now: what they wait for will never happen."""
        for watchers in list(self._watchers.values()):
            for operation in tuple(watchers):
                operation._expire()

    def expire(self, now_ms: int) -> int:
        """Expire what is due at `now_ms`; return how many timers of the wheel fired."""
        return self.wheel.run(now_ms)

    def _try_watchers(self, key: Hashable) -> int:
        completed = 0
        for operation in tuple(self._watchers.get(key, ())):
            # An earlier one's response may have completed this one.
            if not operation.completed and operation.try_complete() and operation.complete():
                completed += 1
        return completed

    def _leave(self, operation: DelayedOperation) -> None:
        assert operation._purgatory is self, "an operation leaves once"
        operation._purgatory = None
        self._waiting -= 1
        if operation._timer is not None:
            operation._timer.cancel()
            operation._timer = None
        watchers = self._watchers
        for key in operation._keys:
            waiting = watchers.get(key)
            if waiting is not None:
                waiting.pop(operation, None)  # a duplicate key is already gone
                if not waiting:
                    del watchers[key]
        operation._keys = ()
