"""The console's socket: bound at the start, while the rest is imported for the first browser.

Until then a console costs a listening socket. The first connections are held, with the bytes that
they have sent, while a thread imports the web server and the pages; then each is handed over, and
later ones go there directly. No signal handler is touched: the broker's own shutdown stops this.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Callable
from typing import Protocol, cast

from barnabas.console.address import ConsoleAddress
from barnabas.model.errors import ConfigError

logger = logging.getLogger("barnabas.console")

HELD_BYTES_MAX = 64 * 1024
CONNECTIONS_MAX = 256
"""Further ones are closed at once; a browser opens six."""
HELD_S_MAX = 30.0
HANDSHAKE_S_MAX = 10.0
STOP_S = 2.0

MISSING = """\
<!doctype html><html lang="en"><meta charset="utf-8"><title>Barnabas</title>
<h1>The console is not installed</h1>
<p>This broker was started with a console, but packages that it needs are missing. Install them, and
load this page again:</p>
<pre>pip install 'barnabas[console]'</pre>
"""


class Hosting(Protocol):
    """The web server, once it was imported."""

    def protocol(self) -> asyncio.Protocol:
        """Return the protocol of a new connection."""

    async def stop(self, timeout_s: float) -> None:
        """End the requests in progress, and close all connections."""


class ConsoleServer:
    """Listens for browsers, and loads what answers them when the first one connects."""

    def __init__(
        self,
        address: ConsoleAddress,
        load: Callable[[], Callable[[], Hosting]],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`load` runs on a thread, and returns a function that is called on the loop."""
        self.address = address
        self._load = load
        self._tls = tls
        self._hosting: Hosting | None = None
        self._loading: asyncio.Task[None] | None = None
        self._held: set[Held] = set()
        self._open = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Bind the address; raise ConfigError if that fails."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                self._protocol,
                self.address.host,
                self.address.port,
                backlog=64,
                ssl=self._tls,
                ssl_handshake_timeout=HANDSHAKE_S_MAX if self._tls else None,
            )
        except OSError as failure:
            why = os.strerror(failure.errno) if failure.errno and failure.errno > 0 else failure
            raise ConfigError(
                f"the console cannot listen on {self.address}: {why}; "
                "choose another address with --console HOST:PORT"
            ) from failure
        port = self._server.sockets[0].getsockname()[1]
        self.address = self.address._replace(port=port)

    @property
    def url(self) -> str:
        """Return the address to open in a browser on this machine."""
        host = self.address.host
        if host in ("", "0.0.0.0", "::"):
            host = "localhost"
        scheme = "https" if self._tls else "http"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.address.port}/"

    @property
    def is_loaded(self) -> bool:
        """Whether a browser has made the console load."""
        return self._hosting is not None

    async def stop(self) -> None:
        """Close the socket and all connections; repeating this is a no-op."""
        if self._server is not None:
            self._server.close()
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait([self._loading])
        for held in list(self._held):
            held.abort()
        if self._hosting is not None:
            await self._hosting.stop(STOP_S)

    def _protocol(self) -> asyncio.Protocol:
        if self._hosting is not None:
            return self._hosting.protocol()
        if self._loading is None:
            self._loading = asyncio.get_running_loop().create_task(self._get_ready())
        return Held(self._held)

    async def _get_ready(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            begin = await loop.run_in_executor(None, self._load)
            self._hosting = begin()
        except ImportError as failure:
            logger.error("console: not installed (%s); install barnabas[console]", failure)
            self._loading = None  # it may be installed meanwhile
            for held in list(self._held):
                held.reject(MISSING)
            return
        except Exception:
            self._loading = None
            logger.exception("console: could not be loaded")
            for held in list(self._held):
                held.abort()
            return
        for held in list(self._held):
            held.hand_over(self._hosting.protocol())


class Held(asyncio.Protocol):
    """A connection that waits for the web server; what it sends is kept."""

    def __init__(self, waiting: set[Held]) -> None:
        self._waiting = waiting
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._page: str | None = None
        """The one answer to whatever is asked."""
        self._due: asyncio.TimerHandle | None = None
        waiting.add(self)  # now: what is waited for may come before `connection_made`

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if len(self._waiting) > CONNECTIONS_MAX:
            self.abort()
            return
        self._due = asyncio.get_running_loop().call_later(HELD_S_MAX, self.abort)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._received += data
        if self._page is not None:
            self._answer(self._page)
        elif len(self._received) >= HELD_BYTES_MAX:
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    def hand_over(self, protocol: asyncio.Protocol) -> None:
        """Let another protocol continue as if it had been there from the beginning."""
        transport = self._transport
        if transport is None:  # `connection_made` is about to be called
            asyncio.get_running_loop().call_soon(self.hand_over, protocol)
            return
        self._leave()
        if transport.is_closing():
            return
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        paused = len(self._received) >= HELD_BYTES_MAX
        if self._received:
            protocol.data_received(bytes(self._received))
        if paused and not transport.is_closing():
            transport.resume_reading()

    def reject(self, page: str) -> None:
        """Answer whatever is asked, or will be, with one page, and close."""
        self._page = page
        if self._received:
            self._answer(page)

    def _answer(self, page: str) -> None:
        self._leave()
        body = page.encode()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(
                b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/html; charset=utf-8\r\n"
                b"Cache-Control: no-store\r\nContent-Security-Policy: default-src 'none'\r\n"
                b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
            )
            self._transport.close()

    def abort(self) -> None:
        """Drop the connection."""
        self._leave()
        if self._transport is not None:
            self._transport.abort()

    def _leave(self) -> None:
        self._waiting.discard(self)
        if self._due is not None:
            self._due.cancel()
            self._due = None
