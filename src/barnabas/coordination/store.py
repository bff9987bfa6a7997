"""The common part of the services in this process: one tree, many sessions.

Every request of a session is applied to the tree immediately, and its response is held back until
all changes in the tree at that time are *settled* (durable, where that is promised). Because
watches and responses leave through the same ordered channel to each session, a session's watch
fires before it can see the change.

A store belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import contextvars
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, TypeVar

from barnabas.coordination.contract import Event, SessionExpired, Watch
from barnabas.coordination.tree import Change, Fired, Outcome, Tree
from barnabas.model.errors import BarnabasError, StorageError

T = TypeVar("T")
Answer = TypeVar("Answer", contravariant=True)

LATE_MS = 1000
"""How much later than it was due a timer means that this process was suspended."""

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


class Reply(Protocol[Answer]):
    """Takes the response to one request, as a future does."""

    def done(self) -> bool:
        """Return whether nobody waits for the response."""

    def set_result(self, result: Answer, /) -> object:
        """Take the result."""

    def set_exception(self, error: BarnabasError, /) -> object:
        """Take the error."""


class Store(ABC):
    """A tree shared by its sessions, which are in this process or at a `TreeServer` of it."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.subscribers: dict[int, Subscriber] = {}
        # The expiry timer belongs to the service, not to the session that happened to start it: a
        # simulation that pauses a session's host must not pause the clock that expires it.
        self._context = contextvars.copy_context()
        self._timer: asyncio.TimerHandle | None = None
        self.is_away = False
        """Whether no session expires, as in an ensemble without a majority."""

    @abstractmethod
    async def open(self) -> None:
        """Open the tree for one more user."""

    @abstractmethod
    async def release(self) -> None:
        """Undo one `open()`."""

    def now_ms(self) -> int:
        """Return the clock's time, for session expiry."""
        return int(asyncio.get_running_loop().time() * 1000)

    @abstractmethod
    def settle(self, changes: Sequence[Change], then: Settled) -> None:
        """Call `then` when the tree as of now, including `changes`, is settled; in call order."""

    def begin(self, subscriber: Subscriber, timeout_ms: int | None) -> int:
        """Open a session; return its id."""
        session_id = self.tree.open_session(self.now_ms(), timeout_ms)
        self.subscribers[session_id] = subscriber
        if timeout_ms is not None:
            self._await_expiry()
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
        reply: Reply[T],
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
            self._timer = loop.call_at(when, self._expire_due, due_ms, context=self._context)

    def _expire_due(self, due_ms: int) -> None:
        if self.now_ms() - due_ms > LATE_MS:
            # This process was suspended: heartbeats that it has not read yet may be waiting.
            self.come_back()
            return
        for session_id in self.tree.expired(self.now_ms()):
            self.expire(session_id)
        self._await_expiry()

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
