"""A listener: one bound address, its connections and their limits."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass

from barnabas.broker.network.connection import Connection, Dispatcher
from barnabas.broker.network.connection_limits import ConnectionLimits
from barnabas.broker.network.listener_tls import ListenerTls
from barnabas.broker.network.tls_transport import TlsTransport
from barnabas.config.listeners import Endpoint
from barnabas.model.errors import ConfigError

logger = logging.getLogger("barnabas.listener")


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
        limits: ConnectionLimits,
        dispatcher: Dispatcher,
        now_ms: Callable[[], int],
        *,
        privileged: bool = True,
        tls: ListenerTls | None = None,
    ) -> None:
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
        self._server: asyncio.Server | None = None
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

    async def _listen(self, port: int) -> asyncio.Server:
        return await asyncio.get_running_loop().create_server(
            self._connection,
            self.endpoint.host or None,
            port,
            backlog=self._options.backlog,
            start_serving=False,
        )

    def _connection(self) -> Connection | TlsTransport:
        connection = Connection(self, self._dispatcher)
        return connection if self.tls is None else TlsTransport(connection, self.tls)

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
        for connection in list(self.connections):
            connection.leave("its listener was closed: the option listeners was changed")

    async def close(self) -> None:
        """Close every connection and wait until they are closed."""
        self._closed = True
        self.stop_accepting()
        for connection in list(self.connections):
            connection.abort()
        if self.connections:
            self._empty = asyncio.get_running_loop().create_future()
            await self._empty
        self._server = None

    def opened(self, connection: Connection) -> None:
        """Admit a new connection, or close it with the reason."""
        if self._closed:  # it was accepted just before
            connection.abort()
            return
        host = connection.session.client_host
        now_ms = self.now_ms()
        reason = self._limits.admit(host, now_ms)
        if reason is not None:
            connection.close(f"rejected, {reason}")
            return
        self.connections[connection] = None
        self._accepted += 1
        connection.session.number = self._accepted
        connection.session.privileged = self.privileged
        connection.last_active_ms = now_ms
        connection.set_socket_options(
            self._options.send_buffer_bytes, self._options.receive_buffer_bytes
        )

    def lost(self, connection: Connection) -> None:
        """Uncount a closed connection."""
        if connection in self.connections:
            del self.connections[connection]
            self._limits.release(connection.session.client_host)
            if not self.connections and self._empty is not None and not self._empty.done():
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
            if not connection.is_open:
                connection.abort()
            elif 0 <= idle_ms_max < quiet_ms:
                connection.close(
                    f"idle for {quiet_ms} ms (connections.max.idle.ms={idle_ms_max})",
                    level=logging.DEBUG,
                )
            elif quiet_ms > 10_000:
                connection.shrink()
