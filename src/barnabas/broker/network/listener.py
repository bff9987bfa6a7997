"""A listener: one bound address, its connections and their limits."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.broker.network.connection import Connection, Dispatcher
from barnabas.broker.network.connection_limits import ListenerLimits
from barnabas.broker.network.listener_counts import ListenerCounts
from barnabas.broker.network.pausable_server import PausableServer
from barnabas.config.listeners import Endpoint
from barnabas.diary import subjects
from barnabas.metrics.registry import Registry
from barnabas.model.errors import ConfigError
from barnabas.model.note import Note, NoteSink, unnoted

if TYPE_CHECKING:
    from barnabas.broker.network.listener_tls import ListenerTls
    from barnabas.broker.network.session import Session
    from barnabas.broker.network.tls_transport import TlsTransport

logger = logging.getLogger("barnabas.network")

WARNING_INTERVAL_MS = 10_000
"""A listener that accepts slowly says so at most this often."""


@dataclass(frozen=True, slots=True)
class SocketOptions:
    """The `socket.*` and `connections.*` options, which apply to every connection."""

    frame_bytes_max: int
    send_buffer_bytes: int
    receive_buffer_bytes: int
    backlog: int
    idle_ms_max: int


class Listener:
    """Accepts connections on one endpoint and hands their frames to a dispatcher."""

    def __init__(
        self,
        endpoint: Endpoint,
        options: SocketOptions,
        limits: ListenerLimits,
        dispatcher: Dispatcher,
        now_ms: Callable[[], int],
        *,
        privileged: bool = True,
        tls: ListenerTls | None = None,
        authenticate: Callable[[Connection], None] | None = None,
        on_admitted: Callable[[], None] = lambda: None,
        on_stalled: Callable[[int, int], None] = lambda api_key, stalled_ms: None,
        note: NoteSink = unnoted,
        counts: ListenerCounts | None = None,
    ) -> None:
        """Accept connections on an endpoint.

        Call `authenticate` with each new connection, which puts it before the dispatcher, and
        `on_admitted` after each; others may have to be closed for it. Call `on_stalled` with the
        API and the milliseconds for which a response waited for its client to read.
        """
        self.on_stalled = on_stalled
        self._counts = counts or ListenerCounts(Registry(), endpoint.name)
        self.bytes_in = self._counts.bytes_in
        self.bytes_out = self._counts.bytes_out
        self.rejected = self._counts.rejected
        self.asked = endpoint
        """As configured; `endpoint` has the real port once bound."""
        self.endpoint = endpoint
        self.name = endpoint.name
        self.frame_bytes_max = options.frame_bytes_max
        self.now_ms = now_ms
        self.privileged = privileged
        self.tls = tls
        self.connections: dict[Connection, None] = {}
        self._options = options
        self._limits = limits
        self._dispatcher = dispatcher
        self._authenticate = authenticate
        self._on_admitted = on_admitted
        self._note = note
        self._server: PausableServer | None = None
        self._waiting: deque[Connection] = deque()
        """Accepted, and unread until there is room and time; nothing else is accepted."""
        self._wait_until_ms: int | None = None
        """The end of the first one's wait; None if it has not arrived at the limits yet."""
        self._wake: asyncio.TimerHandle | None = None
        self._rejected: dict[Connection, asyncio.TimerHandle] = {}
        """Kept for a while, and then closed."""
        self._warned_ms: int | None = None
        self._closed = False
        self._empty: asyncio.Future[None] | None = None
        self._accepted = 0

    async def bind(self) -> None:
        """Bind the address; afterwards `endpoint.port` is the bound one, even if it was 0."""
        try:
            server = await self._listen(self.endpoint.port)
            port = server.sockets[0].getsockname()[1]
            if any(bound.getsockname()[1] != port for bound in server.sockets):
                # A name with several addresses got a free port on each: clients need one for all.
                server.close()
                server = await self._listen(port)
        except OSError as failure:
            # The loop's own message repeats the address.
            why = os.strerror(failure.errno) if failure.errno else failure
            raise ConfigError(
                f"cannot listen on {self.endpoint}: {why}; "
                "choose another port with --listen HOST:PORT"
            ) from failure
        self._server = server
        self.endpoint = self.endpoint._replace(port=port)

    async def _listen(self, port: int) -> PausableServer:
        backlog = self._options.backlog
        server = await asyncio.get_running_loop().create_server(
            self._connection, self.endpoint.host or None, port, backlog=backlog, start_serving=False
        )
        return PausableServer(server, self._connection, backlog)

    def _connection(self) -> Connection | TlsTransport:
        connection = Connection(self, self._dispatcher)
        if self._authenticate is not None:
            self._authenticate(connection)
        return connection if self.tls is None else self.tls.encrypt(connection)

    async def accept(self) -> None:
        """Start to accept connections."""
        assert self._server is not None, "bind first"
        await self._server.start_serving()

    def stop_accepting(self) -> None:
        """Accept no more connections; open ones stay."""
        if self._server is not None:
            self._server.close()

    def mute(self) -> None:
        """Dispatch no more requests; those in handling continue."""
        for connection in self.connections:
            connection.mute()

    def retire(self) -> None:
        """Accept no more connections, and close open ones once they are answered."""
        self.stop_accepting()
        for connection in list(self._waiting):
            connection.abort()
        for connection in list(self.connections):
            connection.leave("its listener was closed, because the option listeners was changed")

    async def close(self) -> None:
        """Close every connection and wait until they are closed."""
        self._closed = True
        self.stop_accepting()
        if self._wake is not None:
            self._wake.cancel()
        for connection in [*self._waiting, *self._rejected, *self.connections]:
            connection.abort()
        if self._are_open:
            self._empty = asyncio.get_running_loop().create_future()
            await self._empty
        self._server = None

    def opened(self, connection: Connection) -> None:
        """Admit a new connection, or close it with the reason."""
        if self._closed:  # it was accepted just before
            connection.abort()
            return
        now_ms = self.now_ms()
        if not self._waiting:
            wait_ms = self._limits.arrive(now_ms)
            if not wait_ms and self._limits.full is None:
                self._admit(connection, now_ms)
                return
            self._wait_until_ms = now_ms + wait_ms
        connection.hold()
        self._waiting.append(connection)
        if len(self._waiting) == 1:
            self._wait()

    def _wait(self) -> None:
        """Accept nothing until there is room and time for the first one that waits."""
        if self._server is not None:
            self._server.pause()
        now_ms, until_ms = self.now_ms(), self._wait_until_ms
        assert until_ms is not None, "the first one has arrived at the limits"
        if until_ms > now_ms:
            self._warn(f"new ones are accepted more slowly ({self._limits.pace})", now_ms)
            loop = asyncio.get_running_loop()
            self._wake = loop.call_later((until_ms - now_ms) / 1000, self._admit_waiting)
        else:
            self._warn(f"new ones wait for one to close: {self._limits.full}", now_ms)
            self._limits.broker.when_room(self._admit_waiting)

    def _warn(self, what: str, now_ms: int) -> None:
        if self._warned_ms is None or now_ms - self._warned_ms >= WARNING_INTERVAL_MS:
            self._warned_ms = now_ms
            logger.warning("connections on %s: %s", self.name, what)

    def _admit_waiting(self) -> None:
        """Admit those that wait, in order, as far as the limits allow."""
        self._wake = None
        while self._waiting and not self._closed:
            now_ms = self.now_ms()
            if self._wait_until_ms is None:
                self._wait_until_ms = now_ms + self._limits.arrive(now_ms)
            if self._wait_until_ms > now_ms or self._limits.full is not None:
                self._wait()
                return
            connection = self._waiting.popleft()
            self._wait_until_ms = None
            self._admit(connection, now_ms)
            if connection in self.connections:
                connection.admitted()
        if self._server is not None and not self._closed:
            self._server.resume()

    def _admit(self, connection: Connection, now_ms: int) -> None:
        rejection = self._limits.admit(connection.session.client_host, now_ms)
        if rejection is not None:
            cause = "rate" if rejection.after_ms else "limit"
            self.note_rejection(connection.session, cause, rejection.reason)
            self.rejected("connection-rate" if rejection.after_ms else "connection-limit")
            self._reject(connection, f"rejected, {rejection.reason}", rejection.after_ms)
            return
        self.connections[connection] = None
        self._counts.opened(now_ms)
        self._accepted += 1
        connection.session.number = self._accepted
        connection.session.privileged = self.privileged
        connection.session.protocol = self.endpoint.protocol
        connection.last_active_ms = now_ms
        connection.set_socket_options(
            self._options.send_buffer_bytes, self._options.receive_buffer_bytes
        )
        self._on_admitted()

    def note_rejection(self, session: Session, cause: str, reason: str) -> None:
        """Note why a connection is not served, or no longer."""
        host, principal = session.client_host, str(session.principal)
        data = {"host": host, "listener": self.name, "principal": principal, "reason": reason}
        self._note(Note("reject.connection", subjects.client(None, host), cause, data))

    def _reject(self, connection: Connection, reason: str, after_ms: int) -> None:
        if not after_ms:
            connection.close(reason)
            return
        connection.hold()
        loop = asyncio.get_running_loop()
        self._rejected[connection] = loop.call_later(after_ms / 1000, connection.close, reason)

    @property
    def _are_open(self) -> bool:
        return bool(self.connections or self._waiting or self._rejected)

    def lost(self, connection: Connection) -> None:
        """Uncount a closed connection."""
        if connection in self.connections:
            del self.connections[connection]
            self._counts.closed(self.now_ms())
            self._limits.release(connection.session.client_host)
        elif connection in self._rejected:
            self._rejected.pop(connection).cancel()
        elif connection in self._waiting:
            if connection is self._waiting[0]:
                self._wait_until_ms = None  # the next one has its own
            self._waiting.remove(connection)
        if not self._are_open and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    def sweep(self) -> None:
        """Close connections that were idle too long, and shrink large buffers of quiet ones.

        One that a previous sweep closed and that is still open (its client does not read) is
        aborted.
        """
        now_ms = self.now_ms()
        idle_ms_max = self._options.idle_ms_max
        for connection in list(self.connections):
            quiet_ms = connection.idle_ms(now_ms)
            login_due_ms = connection.login_due_ms
            if not connection.is_open:
                connection.abort()
            elif login_due_ms is not None and now_ms >= login_due_ms:
                connection.close("not authenticated in time", cause="authentication")
            elif 0 <= idle_ms_max < quiet_ms:
                connection.close(
                    f"idle for {quiet_ms} ms (connections.max.idle.ms={idle_ms_max})",
                    level=logging.DEBUG,
                    cause="idle",
                )
            elif quiet_ms > 10_000:
                connection.shrink()
