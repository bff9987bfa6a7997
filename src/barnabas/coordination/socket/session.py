"""One session with a tree that another process of this machine serves.

    tree = SocketCoordination("/var/lib/barnabas/coordination.sock", timeout_ms=18_000)

The session lives as long as its connection: when that ends, for whatever reason, the session has
expired. `start` opens the next one over a new connection.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from barnabas.client.framing import FrameReader
from barnabas.coordination.contract import (
    ANY_VERSION,
    Contact,
    Coordination,
    CoordinationError,
    Create,
    Delete,
    Event,
    EventType,
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
    check_path,
)
from barnabas.coordination.session import HEARTBEATS_PER_TIMEOUT
from barnabas.coordination.socket.messages import (
    NOTICE,
    REPLY_BYTES_MAX,
    Answer,
    Call,
    TreeReply,
    TreeRequest,
    failure_of,
    frame_of,
    reply_of,
    result_of,
    stat_of,
    write_of,
)
from barnabas.model.errors import RemoteProtocolError

logger = logging.getLogger("barnabas.coordination")

READS_PER_REQUEST = 500

_Waiting = tuple[TreeRequest, "asyncio.Future[list[Answer]]", "Watch | None"]


class ServiceGone(CoordinationError):
    """The process that served the tree has ended, and with it all that is registered there."""

    def __init__(self, message: str) -> None:
        super().__init__("", message)


class SocketCoordination(Coordination):
    """A client of a TreeServer; see `Coordination` for the calls."""

    def __init__(self, path: str | Path, *, timeout_ms: int) -> None:
        """Connect to the socket at `path`, which must be there when `start` is called.

        The server expires a session from which nothing was received for `timeout_ms`.
        """
        self._path = str(path)
        self._timeout_ms = timeout_ms
        self._session_id = 0
        self._state = SessionState.CLOSED
        self._connection: _Connection | None = None
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
        if self._state is not SessionState.CONNECTED:
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
        connection = await self._connect()
        begin = TreeRequest(call=Call.BEGIN, timeout_ms=self._timeout_ms)
        asked_s = self._loop.time()
        try:
            await connection.ask(begin)
        except SessionExpired as failure:
            raise ServiceGone(
                f"the process that serves the tree at {self._path} closed the connection"
            ) from failure
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self._session_id = connection.session_id
        self._asked_s, self._heard_s = asked_s, self._loop.time()
        self._enter(SessionState.CONNECTED)
        self._schedule_heartbeat()
        connection.on_lost(self._lost)

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if self._state is SessionState.CONNECTED and connection is not None:
            connection.on_lost(lambda: None)
            try:
                await connection.ask(TreeRequest(call=Call.END))
            except SessionExpired:
                logger.debug("session %d had ended before it was closed", self._session_id)
            finally:
                connection.close()
        if self._state is not SessionState.CLOSED:
            self._enter(SessionState.CLOSED)

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
        create = Create(check_path(path), data, ephemeral, sequence)
        request = TreeRequest(call=Call.MULTI, writes=[write_of(create)], make_parents=make_parents)
        [answer] = await self._ask(request)
        assert answer.path is not None
        return answer.path

    async def get(self, path: str, watch: Watch | None = None) -> Found:
        [found] = await self.get_many([path], watch)
        if found is None:
            raise NoNode(path, f"{path} does not exist")
        return found

    async def get_many(
        self, paths: Sequence[str], watch: Watch | None = None
    ) -> list[Found | None]:
        checked = [check_path(path) for path in paths]
        chunks = [
            checked[start : start + READS_PER_REQUEST]
            for start in range(0, len(checked), READS_PER_REQUEST)
        ]
        answered = await asyncio.gather(
            *(self._ask(TreeRequest(call=Call.GET, paths=chunk), watch) for chunk in chunks)
        )
        found: list[Found | None] = []
        for answers in answered:
            for answer in answers:
                stat = stat_of(answer)
                found.append(None if stat is None else (bytes(answer.data), stat))
        return found

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        [result] = await self.multi([Set(path, data, version)])
        assert isinstance(result, Stat)
        return result

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.multi([Delete(path, version)])

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        request = TreeRequest(call=Call.EXISTS, paths=[check_path(path)])
        [answer] = await self._ask(request, watch)
        return stat_of(answer)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        request = TreeRequest(call=Call.CHILDREN, paths=[check_path(path)])
        return [answer.path or "" for answer in await self._ask(request, watch)]

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        for operation in operations:
            check_path(operation.path)
        request = TreeRequest(call=Call.MULTI, writes=[write_of(each) for each in operations])
        return [result_of(answer) for answer in await self._ask(request)]

    # Inside

    async def _connect(self) -> _Connection:
        try:
            _, connection = await self._loop.create_unix_connection(
                lambda: _Connection(self._loop, self._context), self._path
            )
        except OSError as failure:
            raise ServiceGone(
                f"the process that serves the tree at {self._path} has ended: {failure}"
            ) from failure
        return connection

    async def _ask(self, request: TreeRequest, watch: Watch | None = None) -> list[Answer]:
        if self._state is not SessionState.CONNECTED or self._connection is None:
            raise SessionExpired(self._session_id)
        asked_s = self._loop.time()
        reply = self._connection.ask(request, watch)
        try:
            return await reply
        finally:
            if self._record is not None and not reply.cancelled():
                self._record(self._loop.time() - asked_s)

    def _lost(self) -> None:
        if self._state is SessionState.CONNECTED:
            self._connection = None
            self._enter(SessionState.EXPIRED)

    def _enter(self, state: SessionState) -> None:
        self._state = state
        if self._heartbeat is not None:
            self._heartbeat.cancel()
            self._heartbeat = None
        for listener in list(self._listeners):
            self._loop.call_soon(listener, state, context=self._context)

    def _schedule_heartbeat(self) -> None:
        delay_s = self._timeout_ms / 1000 / HEARTBEATS_PER_TIMEOUT
        self._heartbeat = self._loop.call_later(delay_s, self._send_heartbeat)

    def _send_heartbeat(self) -> None:
        connection, asked_s = self._connection, self._loop.time()
        if connection is None:
            return

        def heard(beat: asyncio.Future[list[Answer]]) -> None:
            if not beat.cancelled() and beat.exception() is None and connection is self._connection:
                self._asked_s, self._heard_s = asked_s, self._loop.time()

        connection.ask(TreeRequest(call=Call.HEARTBEAT)).add_done_callback(heard)
        self._schedule_heartbeat()


class _Connection(asyncio.BufferedProtocol):
    """The connection of one session: the requests that wait, and the watches that were left."""

    def __init__(self, loop: asyncio.AbstractEventLoop, context: contextvars.Context) -> None:
        self.session_id = 0
        self._loop = loop
        self._context = context
        self._reader = FrameReader(REPLY_BYTES_MAX)
        self._waiting: dict[int, _Waiting] = {}
        self._asked = 0
        # By path, each an ordered set: a watch that is left twice is kept once.
        self._node_watches: dict[str, dict[Watch, None]] = {}
        self._children_watches: dict[str, dict[Watch, None]] = {}
        self._is_over = False
        self._on_lost: Callable[[], None] = lambda: None

    def ask(self, request: TreeRequest, watch: Watch | None = None) -> asyncio.Future[list[Answer]]:
        """Send a request; return its answers, which may be SessionExpired."""
        reply: asyncio.Future[list[Answer]] = self._loop.create_future()
        if self._is_over:
            reply.set_exception(SessionExpired(self.session_id))
            return reply
        self._asked = self._asked + 1 & 0x7FFFFFFF
        request.correlation_id = self._asked
        request.watch = watch is not None
        frame = frame_of(request)
        self._waiting[self._asked] = request, reply, watch
        self._transport.write(frame)
        return reply

    def on_lost(self, call: Callable[[], None]) -> None:
        """Call when the connection has ended; at once if it has."""
        self._on_lost = call
        if self._is_over:
            call()

    def close(self) -> None:
        """Close the connection; no watch fires from now on."""
        self._is_over = True
        self._transport.close()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, failure: Exception | None) -> None:
        self._is_over = True
        waiting, self._waiting = self._waiting, {}
        self._on_lost()
        for _, reply, _ in waiting.values():
            if not reply.done():
                reply.set_exception(SessionExpired(self.session_id))

    def get_buffer(self, hint: int) -> memoryview:
        return self._reader.target()

    def buffer_updated(self, count: int) -> None:
        try:
            for frame in self._reader.received(count):
                self._handle(reply_of(frame))
        except (RemoteProtocolError, KeyError) as failure:
            logger.error("coordination socket: unreadable reply, session ends: %r", failure)
            self._transport.abort()

    # Inside

    def _handle(self, received: TreeReply) -> None:
        if received.correlation_id == NOTICE:
            self._fire(Event(EventType(received.text), received.path))
            return
        request, reply, watch = self._waiting.pop(received.correlation_id)
        if request.call == Call.BEGIN:
            self.session_id = received.session_id
        failure = failure_of(received, self.session_id)
        if watch is not None and failure is None:
            # Here and not in the caller, who runs later: the next frame may be the event.
            self._leave(request, received.answers, watch)
        if reply.done():
            return  # The call was cancelled.
        if failure is None:
            reply.set_result(received.answers)
        else:
            reply.set_exception(failure)

    def _leave(self, request: TreeRequest, answers: list[Answer], watch: Watch) -> None:
        """Keep a watch for what a request has read."""
        if request.call == Call.CHILDREN:
            self._children_watches.setdefault(request.paths[0], {})[watch] = None
            return
        for path, answer in zip(request.paths, answers, strict=True):
            if answer.stat or request.call == Call.EXISTS:
                self._node_watches.setdefault(path, {})[watch] = None

    def _fire(self, event: Event) -> None:
        taken: dict[Watch, None] = {}
        if event.type is not EventType.CHILDREN:
            taken |= self._node_watches.pop(event.path, {})
        if event.type in (EventType.CHILDREN, EventType.DELETED):
            taken |= self._children_watches.pop(event.path, {})
        for watch in taken:
            self._loop.call_soon(self._call, watch, event, context=self._context)

    def _call(self, watch: Watch, event: Event) -> None:
        if not self._is_over:
            watch(event)
