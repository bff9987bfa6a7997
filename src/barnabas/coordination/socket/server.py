"""Serves a store to the processes of this machine's user: one session per connection.

    server = TreeServer(EmbeddedStore(path), socket_path)
    await server.start()
    ...
    await server.stop()

A session ends with its connection, so the nodes of a process that dies are deleted at once. One
that hangs expires as with ZooKeeper, when nothing was received for its timeout. What a peer sends
and this server cannot read ends that peer's connection and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias, cast

from barnabas.client.framing import FrameReader
from barnabas.coordination.contract import Create, Event, Found, NoNode, Result, Watch
from barnabas.coordination.socket.messages import (
    NOTICE,
    REQUEST_BYTES_MAX,
    Call,
    TreeReply,
    TreeRequest,
    answer_of,
    failure_reply,
    frame_of,
    operation_of,
    request_of,
)
from barnabas.coordination.store import Store
from barnabas.coordination.tree import Outcome
from barnabas.model.errors import BarnabasError, ConfigError, RemoteProtocolError

logger = logging.getLogger("barnabas.coordination")

SOCKET_MASK = 0o177
"""Credentials and tokens are in the tree: only this user may connect."""

Question: TypeAlias = Callable[[], "tuple[Any, Outcome | None]"]


class TreeServer:
    """Accepts the sessions of other processes."""

    def __init__(self, store: Store, path: str | Path) -> None:
        """Serve `store` at `path`: a socket is created there; its directory must exist."""
        self.path = Path(path)
        self._store = store
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()

    async def start(self) -> None:
        """Open the store and listen; raise StorageError or ConfigError."""
        await self._store.open()  # its lock also tells that nobody else serves at this path
        try:
            self._server = await asyncio.get_running_loop().create_unix_server(
                lambda: _Connection(self._store, self._connections), sock=self._bind()
            )
        except BaseException:
            await self._store.release()
            raise

    async def stop(self) -> None:
        """End all sessions, and close the store."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for connection in list(self._connections):
            connection.abort()
        await asyncio.gather(*(connection.lost for connection in list(self._connections)))
        await server.wait_closed()
        self.path.unlink(missing_ok=True)
        await self._store.release()

    def _bind(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.path.unlink(missing_ok=True)  # of a server that was killed
            mask = os.umask(SOCKET_MASK)
            try:
                listener.bind(str(self.path))
            finally:
                os.umask(mask)
        except OSError as failure:
            listener.close()
            raise ConfigError(f"cannot listen on {self.path}: {failure}") from failure
        return listener


class _Connection(asyncio.BufferedProtocol):
    """One process's connection, and its session from BEGIN on."""

    def __init__(self, store: Store, connections: set[_Connection]) -> None:
        self._store = store
        self._connections = connections
        self._reader = FrameReader(REQUEST_BYTES_MAX)
        self._session_id = 0
        # One object for all its watches: the session knows who waits for what.
        self._watch: Watch = lambda event: None

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._connections.add(self)

    def connection_lost(self, failure: Exception | None) -> None:
        self._connections.discard(self)
        if self._session_id in self._store.subscribers:
            self._store.expire(self._session_id)
        self.lost.set_result(None)

    def get_buffer(self, hint: int) -> memoryview:
        return self._reader.target()

    def buffer_updated(self, count: int) -> None:
        try:
            for frame in self._reader.received(count):
                self._handle(request_of(frame))
        except RemoteProtocolError as failure:
            logger.warning("coordination socket: connection closed: %s", failure)
            self._transport.abort()

    def abort(self) -> None:
        """End the connection at once: a peer that does not read must not hold up anybody."""
        self._transport.abort()

    # What the store calls: everything is written at once, so it leaves in order

    def post(self, act: Callable[[], None]) -> None:
        """Run `act`, which writes to the session."""
        act()

    def on_watch(self, session_id: int, watch: Watch, event: Event) -> None:
        """Send that a watch has fired."""
        self._send(TreeReply(correlation_id=NOTICE, path=event.path, text=event.type.value))

    def on_expired(self, session_id: int) -> None:
        """Close the connection: that is how the other end learns of it."""
        self._transport.close()

    def on_answer(self, session_id: int, asked_s: float) -> None:
        """Handle that a heartbeat found the session alive: the reply to it is sent already."""

    # Inside

    def _send(self, reply: TreeReply) -> None:
        if not self._transport.is_closing():
            self._transport.write(frame_of(reply))

    def _handle(self, request: TreeRequest) -> None:
        if (request.call == Call.BEGIN) == bool(self._session_id):
            raise RemoteProtocolError("a connection has one session, which BEGIN opens")
        reply = _Reply(request.correlation_id, self._send)
        if request.call == Call.BEGIN:
            self._session_id = self._store.begin(self, request.timeout_ms or None)
            reply.session_id = self._session_id
            reply.set_result([])
        else:
            self._store.ask(self._session_id, self, self._question(request), reply)

    def _question(self, request: TreeRequest) -> Question:
        """Return what the store is to do for a request; it returns answers."""
        tree, session_id = self._store.tree, self._session_id
        watch = self._watch if request.watch else None
        paths = request.paths
        operations = [operation_of(write) for write in request.writes]

        def found(path: str) -> Found | None:
            with suppress(NoNode):
                return tree.get(path, session_id, watch)
            return None

        def written(outcome: Outcome) -> tuple[list[Result], Outcome]:
            return outcome.results, outcome

        match request.call, operations, paths:
            case Call.END, [], []:
                return lambda: ([], self._store.end(session_id))
            case Call.HEARTBEAT, [], []:
                return lambda: ([], None)
            case Call.MULTI, [Create() as create], [] if request.make_parents:
                return lambda: written(tree.create(create, session_id, make_parents=True))
            case Call.MULTI, _, [] if not request.make_parents:
                return lambda: written(tree.apply(operations, session_id))
            case Call.GET, [], _:
                return lambda: ([found(path) for path in paths], None)
            case Call.EXISTS, [], [path]:
                return lambda: ([tree.exists(path, session_id, watch)], None)
            case Call.CHILDREN, [], [path]:
                return lambda: (tree.children(path, session_id, watch), None)
        raise RemoteProtocolError(f"call {request.call} does not fit what is in it")


class _Reply:
    """Takes the answer to one request, and sends it."""

    def __init__(self, correlation_id: int, send: Callable[[TreeReply], None]) -> None:
        self._correlation_id = correlation_id
        self._send = send
        self.session_id = 0

    def done(self) -> bool:
        """Return False: the other end tells nobody that it waits no longer."""
        return False

    def set_result(self, results: list[Any]) -> None:
        """Send results."""
        self._send(
            TreeReply(
                correlation_id=self._correlation_id,
                session_id=self.session_id,
                answers=[answer_of(result) for result in results],
            )
        )

    def set_exception(self, error: BarnabasError) -> None:
        """Send an error."""
        self._send(failure_reply(self._correlation_id, error))
