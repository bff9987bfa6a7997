"""The common part of the services in this process: one tree, many sessions.

Every request of a session is applied to the tree immediately, and its response is held back until
all changes in the tree at that time are *settled* (durable, where that is promised). Because
watches and responses leave through the same ordered channel to each session, a session's watch
fires before it can see the change.

A store belongs to one event loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from asyncio import Future
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, TypeVar

from barnabas.coordination.contract import Event, SessionExpired, Watch
from barnabas.coordination.tree import Change, Fired, Outcome, Tree
from barnabas.model.errors import BarnabasError, StorageError

T = TypeVar("T")

Settled: TypeAlias = Callable[[StorageError | None], None]
"""Called when changes are settled, or with the reason why they were undone."""


class Subscriber(Protocol):
    """A session's end of the channel back."""

    def post(self, act: Callable[[], None]) -> None:
        """Run `act` at the session's end, after everything sent before."""

    def on_watch(self, session_id: int, watch: Watch, event: Event) -> None:
        """Call a watch of the session."""

    def on_expired(self, session_id: int) -> None:
        """Report that the session has expired."""

    def on_answer(self, session_id: int, asked_s: float) -> None:
        """Report that a heartbeat sent at `asked_s` found the session alive."""


class Store(ABC):
    """A tree shared by the sessions of this process."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.subscribers: dict[int, Subscriber] = {}

    @abstractmethod
    async def open(self) -> None:
        """Open the tree for one more user."""

    @abstractmethod
    async def release(self) -> None:
        """Undo one `open()`."""

    @abstractmethod
    def now_ms(self) -> int:
        """Return the clock's time, for session expiry."""

    @abstractmethod
    def settle(self, changes: Sequence[Change], then: Settled) -> None:
        """Call `then` when the tree as of now, including `changes`, is settled; in call order."""

    def begin(self, subscriber: Subscriber, timeout_ms: int | None) -> int:
        """Open a session; return its id."""
        session_id = self.tree.open_session(self.now_ms(), timeout_ms)
        self.subscribers[session_id] = subscriber
        return session_id

    def touch(self, session_id: int, subscriber: Subscriber, asked_s: float) -> None:
        """Answer a heartbeat sent at `asked_s`; an ended session is notified of its expiry."""
        try:
            self.tree.touch(session_id, self.now_ms())
        except SessionExpired:
            subscriber.post(lambda: subscriber.on_expired(session_id))
        else:
            subscriber.post(lambda: subscriber.on_answer(session_id, asked_s))

    def ask(
        self,
        session_id: int,
        subscriber: Subscriber,
        question: Callable[[], tuple[T, Outcome | None]],
        reply: Future[T],
    ) -> None:
        """Answer a request from the current tree; the reply leaves when what it saw is settled."""
        changes: Sequence[Change] = ()
        fired: Sequence[Fired] = ()
        refusal: BarnabasError | None = None
        try:
            self.tree.touch(session_id, self.now_ms())
            result, outcome = question()
            if outcome is not None:
                changes, fired = outcome.changes, outcome.fired
        except BarnabasError as failure:
            refusal = failure

        def answer(error: BarnabasError | None) -> None:
            if reply.done():
                return  # Nobody is waiting: the call was cancelled.
            if error is None:
                reply.set_result(result)
            else:
                reply.set_exception(error)

        def settled(failure: StorageError | None) -> None:
            self._tell_watches(fired)
            error = failure or refusal
            if isinstance(error, SessionExpired):
                subscriber.post(lambda: subscriber.on_expired(session_id))
            subscriber.post(lambda: answer(error))

        self.settle(changes, settled)

    def end(self, session_id: int) -> Outcome:
        """End a session at its own request."""
        del self.subscribers[session_id]
        return self.tree.end_session(session_id)

    def expire(self, session_id: int) -> None:
        """Expire a session as if its heartbeats had stopped."""
        subscriber = self.subscribers.pop(session_id)
        outcome = self.tree.end_session(session_id)
        self.settle(outcome.changes, lambda failure: self._tell_watches(outcome.fired))
        subscriber.post(lambda: subscriber.on_expired(session_id))

    def _tell_watches(self, fired: Sequence[Fired]) -> None:
        # Even after a failure: the watches are spent, and a spurious one only causes a reread.
        for session_id, watch, event in fired:
            subscriber = self.subscribers.get(session_id)
            if subscriber is not None:
                subscriber.post(_watch_call(subscriber, session_id, watch, event))


def _watch_call(
    subscriber: Subscriber, session_id: int, watch: Watch, event: Event
) -> Callable[[], None]:
    return lambda: subscriber.on_watch(session_id, watch, event)
