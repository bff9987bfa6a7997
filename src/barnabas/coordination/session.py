"""One session with a store in this process, over a channel to the store and one back.

By default the channels are direct: requests reach the store immediately, and responses and watches
come back through the loop's queue. A simulation supplies channels that take time, hold what is sent
while a link is cut, and keep the order.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias, TypeVar, cast

from barnabas.coordination.contract import (
    ANY_VERSION,
    Contact,
    Coordination,
    Create,
    Delete,
    Event,
    Found,
    NoNode,
    Operation,
    Result,
    SessionExpired,
    SessionListener,
    SessionState,
    Set,
    Stat,
    Watch,
)
from barnabas.coordination.store import Store
from barnabas.coordination.tree import Outcome

T = TypeVar("T")

Carry: TypeAlias = Callable[[Callable[[], None]], object]
"""Runs what it is given at the other end of a link, now or later, in the order given."""

HEARTBEATS_PER_TIMEOUT = 6


class StoreSession(Coordination):
    """A client of a Store; see `Coordination` for the calls."""

    def __init__(
        self,
        store: Store,
        *,
        timeout_ms: int | None = None,
        to_store: Carry | None = None,
        to_session: Carry | None = None,
    ) -> None:
        """Bind to `store`.

        With `timeout_ms` the session sends heartbeats, expires at the store when none arrive for
        that long, and learns of it once the store can reach it; without, it lives until it is
        closed or expired explicitly.
        """
        self._store = store
        self._timeout_ms = timeout_ms
        self._to_store: Carry = to_store or (lambda act: act())
        self._to_session = to_session
        self._session_id = 0
        self._state = SessionState.CLOSED
        self._holds_store = False
        self._listeners: list[SessionListener] = []
        self._heartbeat: asyncio.TimerHandle | None = None
        self._asked_s = self._heard_s = 0.0
        self._record: Callable[[float], object] | None = None

    # The session

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def state(self) -> SessionState:
        return self._state

    @property
    def contact(self) -> Contact | None:
        if self._timeout_ms is None or self._state is not SessionState.CONNECTED:
            return None
        now_s = self._loop.time()
        return Contact(
            self._timeout_ms,
            (now_s - self._asked_s) * 1000,
            (now_s - self._heard_s) * 1000,
            self._asked_s,
        )

    def measure(self, record: Callable[[float], object]) -> None:
        self._record = record

    def add_session_listener(self, listener: SessionListener) -> None:
        self._listeners.append(listener)

    def remove_session_listener(self, listener: SessionListener) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)

    async def start(self) -> None:
        if self._state is SessionState.CONNECTED:
            return
        self._loop = asyncio.get_running_loop()
        # Watches and listeners run in the context that started the session, whatever caused them.
        self._context = contextvars.copy_context()
        if not self._holds_store:
            await self._store.open()
            self._holds_store = True
        begun: asyncio.Future[int] = self._loop.create_future()

        def begin() -> None:
            session_id = self._store.begin(self, self._timeout_ms)
            self.post(lambda: begun.set_result(session_id) if not begun.done() else None)

        asked_s = self._loop.time()
        self._to_store(begin)
        self._session_id = await begun
        self._asked_s, self._heard_s = asked_s, self._loop.time()
        self._enter(SessionState.CONNECTED)
        self._schedule_heartbeat()

    async def close(self) -> None:
        if self._state is SessionState.CONNECTED:
            session_id = self._session_id
            # It may have ended without our knowledge: then its nodes are deleted, as intended.
            with suppress(SessionExpired):
                await self._ask(lambda: (None, self._store.end(session_id)))
        if self._state is not SessionState.CLOSED:
            self._enter(SessionState.CLOSED)
        if self._holds_store:
            self._holds_store = False
            await self._store.release()

    # Nodes

    async def create(
        self,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = False,
        sequence: bool = False,
        make_parents: bool = False,
    ) -> str:
        operation = Create(path, data, ephemeral, sequence)
        session_id = self._session_id
        results = await self._write(
            lambda: self._store.tree.create(operation, session_id, make_parents)
        )
        return cast(str, results[0])

    async def get(self, path: str, watch: Watch | None = None) -> Found:
        session_id = self._session_id
        return await self._ask(lambda: (self._store.tree.get(path, session_id, watch), None))

    async def get_many(
        self, paths: Sequence[str], watch: Watch | None = None
    ) -> list[Found | None]:
        session_id = self._session_id

        def found(path: str) -> Found | None:
            try:
                return self._store.tree.get(path, session_id, watch)
            except NoNode:
                return None

        return await self._ask(lambda: ([found(path) for path in paths], None))

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        results = await self.multi([Set(path, data, version)])
        return cast(Stat, results[0])

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.multi([Delete(path, version)])

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        session_id = self._session_id
        return await self._ask(lambda: (self._store.tree.exists(path, session_id, watch), None))

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        session_id = self._session_id
        return await self._ask(lambda: (self._store.tree.children(path, session_id, watch), None))

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        session_id = self._session_id
        return await self._write(lambda: self._store.tree.apply(operations, session_id))

    # What the store reports to this end

    def post(self, act: Callable[[], None]) -> None:
        """Carry `act` from the store to this end, in order."""
        if self._to_session is not None:
            self._to_session(act)
        else:
            self._loop.call_soon(act, context=self._context)

    def on_watch(self, session_id: int, watch: Watch, event: Event) -> None:
        """Call a watch, unless its session has ended."""
        if self._is_open(session_id):
            watch(event)

    def on_expired(self, session_id: int) -> None:
        """Handle the expiry of the session by the store."""
        if self._is_open(session_id):
            self._enter(SessionState.EXPIRED)

    def on_answer(self, session_id: int, asked_s: float) -> None:
        """Record that a heartbeat found the session alive."""
        if self._is_open(session_id):
            self._asked_s, self._heard_s = asked_s, self._loop.time()

    # Inside

    def _is_open(self, session_id: int) -> bool:
        return self._state is SessionState.CONNECTED and session_id == self._session_id

    async def _write(self, write: Callable[[], Outcome]) -> list[Result]:
        def question() -> tuple[list[Result], Outcome]:
            outcome = write()
            return outcome.results, outcome

        return await self._ask(question)

    async def _ask(self, question: Callable[[], tuple[T, Outcome | None]]) -> T:
        session_id = self._session_id
        if self._state is not SessionState.CONNECTED:
            raise SessionExpired(session_id)
        reply: asyncio.Future[T] = self._loop.create_future()
        asked_s = self._loop.time()
        self._to_store(lambda: self._store.ask(session_id, self, question, reply))
        try:
            return await reply
        finally:
            if self._record is not None and not reply.cancelled():
                self._record(self._loop.time() - asked_s)

    def _enter(self, state: SessionState) -> None:
        self._state = state
        if self._heartbeat is not None:
            self._heartbeat.cancel()
            self._heartbeat = None
        for listener in list(self._listeners):
            self._loop.call_soon(listener, state, context=self._context)

    def _schedule_heartbeat(self) -> None:
        if self._timeout_ms is not None:
            delay = self._timeout_ms / 1000 / HEARTBEATS_PER_TIMEOUT
            self._heartbeat = self._loop.call_later(delay, self._send_heartbeat)

    def _send_heartbeat(self) -> None:
        session_id = self._session_id
        asked_s = self._loop.time()
        self._to_store(lambda: self._store.touch(session_id, self, asked_s))
        self._schedule_heartbeat()
