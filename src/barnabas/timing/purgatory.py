"""Purgatory: operations that cannot be answered yet, watched by key and bounded by a deadline.

An operation is tried when it arrives, tried again whenever one of its keys is checked, and given up
at its deadline. It completes exactly once, whichever comes first. Who changes what an operation may
wait for (an append, a high watermark, an ISR, a deletion) calls `check(key)`.

A check asked for while another one of the same purgatory is running (an answer that lets a
connection's next request run, which appends and checks in turn) is not nested: the running one
takes it up before it returns. A chain of completions therefore never grows the stack.

Everything is synchronous and single-threaded, so nothing can happen between trying an operation and
watching it, and a completed operation leaves all its watch lists at once: what is kept here is what
waits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Hashable, Iterable

from barnabas.timing.wheel import Timer, TimingWheel


class DelayedOperation(ABC):
    """Something to be answered later; subclasses decide and answer."""

    __slots__ = ("_keys", "_purgatory", "_timer", "completed")

    def __init__(self) -> None:
        self.completed = False
        self._keys: tuple[Hashable, ...] = ()
        self._timer: Timer | None = None
        self._purgatory: Purgatory | None = None

    @abstractmethod
    def try_complete(self) -> bool:
        """Say whether the operation can be answered now."""

    @abstractmethod
    def on_complete(self) -> None:
        """Answer; called exactly once, with whatever state there is then."""

    def on_expire(self) -> None:  # noqa: B027 - most have nothing to note
        """Note that the deadline came first; called just before `on_complete`."""

    def give_way(self) -> None:  # noqa: B027 - most let it wait
        """Hear that whoever waits for this has more to ask, behind it."""

    def complete(self) -> bool:
        """Answer now, without trying; False when it was completed or cancelled before."""
        if not self.cancel():
            return False
        self.on_complete()
        return True

    def cancel(self) -> bool:
        """Leave without an answer (its connection is gone); False when it is completed already."""
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
    """Watch lists of delayed operations over a timing wheel, which purgatories may share."""

    def __init__(self, name: str, wheel: TimingWheel) -> None:
        self.name = name
        self.wheel = wheel
        self._watchers: dict[Hashable, dict[DelayedOperation, None]] = {}
        self._waiting = 0
        self._checking = False
        self._asked: deque[Hashable] = deque()

    def __len__(self) -> int:
        """Count the operations that wait."""
        return self._waiting

    @property
    def key_count(self) -> int:
        """Count the keys under which something waits."""
        return len(self._watchers)

    def watch(
        self, operation: DelayedOperation, keys: Iterable[Hashable], deadline_ms: int | None
    ) -> bool:
        """Try the operation; if it must wait, watch it under `keys` until `deadline_ms`.

        Return whether it is completed. Without a deadline it waits for its keys alone.
        """
        if operation.completed:
            return True
        if operation.try_complete():
            operation.complete()
            return True
        if operation.completed:  # trying it may have cancelled it
            return True
        assert operation._purgatory is None, "an operation is watched once"
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

        Within a check of this purgatory the key is queued for the running one, and 0 is returned.
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
            # If an answer failed, the keys still asked for are taken up by the next check.
            self._checking = False
        return completed

    def give_up(self) -> None:
        """Let everything that waits expire now: what it waits for will not come any more."""
        for watchers in list(self._watchers.values()):
            for operation in tuple(watchers):
                operation._expire()

    def expire(self, now_ms: int) -> int:
        """Give up what is due at `now_ms`; return how many timers of the wheel fired."""
        return self.wheel.run(now_ms)

    def _try_watchers(self, key: Hashable) -> int:
        completed = 0
        for operation in tuple(self._watchers.get(key, ())):
            # An earlier one's answer may have completed this one.
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
                waiting.pop(operation, None)  # a key given twice is already gone
                if not waiting:
                    del watchers[key]
        operation._keys = ()
