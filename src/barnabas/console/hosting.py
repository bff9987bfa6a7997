"""The web server: uvicorn's protocol on the broker's loop, with limits for slow clients.

Only the protocol class is used. `uvicorn.Server` would take the signals over, and with them the
broker's controlled shutdown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast

import anyio._backends._asyncio  # noqa: F401  else the first stream imports it on the loop
import h11
from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from barnabas.console.guard import CERTIFICATE
from barnabas.console.server import CONNECTIONS_MAX

HEAD_BYTES_MAX = 32 * 1024
HEAD_S_MAX = 10.0
"""How long the head of a request may take, from its first byte or from the connection's start."""
KEEP_ALIVE_S = 30


class WebServer:
    """Serves one application; its connections and tasks are in `state`."""

    def __init__(self, app: ASGIApp) -> None:
        self.state = ServerState()
        self._config = Config(
            cast(Any, app),
            http=LimitedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            limit_concurrency=CONNECTIONS_MAX,
            h11_max_incomplete_event_size=HEAD_BYTES_MAX,
        )
        self._config.load()
        # What clients send wrong is no concern of the operator's.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)

    def protocol(self) -> asyncio.Protocol:
        """Return the protocol of a new connection."""
        return LimitedProtocol(self._config, self.state, {}, asyncio.get_running_loop())

    async def stop(self, timeout_s: float) -> None:
        """Drop all connections, which ends live streams; cancel what still runs after a time."""
        tasks = list(self.state.tasks)
        for connection in list(self.state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()
        if tasks:
            _, running = await asyncio.wait(tasks, timeout=timeout_s)
            for task in running:
                task.cancel()


class LimitedProtocol(H11Protocol):
    """A connection whose client must send whole requests in time."""

    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        # Requests have a copy of it as `scope["state"]`.
        self.app_state = {} if tls is None else {CERTIFICATE: tls.getpeercert(binary_form=True)}
        if len(self.connections) > CONNECTIONS_MAX:
            transport.abort()
            return
        self._due = self.loop.call_later(HEAD_S_MAX, self._too_slow)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        head_is_incomplete = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        if not head_is_incomplete:
            self._in_time()
        elif self._due is None:
            self._due = self.loop.call_later(HEAD_S_MAX, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        super().connection_lost(exc)

    def _in_time(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _too_slow(self) -> None:
        self._due = None
        self.transport.abort()


def hosting_of(make_app: Callable[[], ASGIApp]) -> Callable[[], WebServer]:
    """Build the application, on whatever thread this is called; serve it on the loop's."""
    app = make_app()
    return lambda: WebServer(app)
