"""A server whose new connections can be left in the kernel's queue for a while.

An asyncio server accepts as long as it exists. Ours is closed to pause it, while a duplicate of
its socket keeps listening, and recreated from that duplicate. Connections that arrive meanwhile
are accepted then.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

from barnabas.broker.loop import spawn

logger = logging.getLogger("barnabas.network")

RETRY_S = 1.0


class PausableServer:
    """A server that was created but does not accept connections yet."""

    def __init__(
        self, server: asyncio.Server, factory: Callable[[], asyncio.BaseProtocol], backlog: int
    ) -> None:
        self.sockets = list(server.sockets)
        self._servers = [server]
        self._factory = factory
        self._backlog = backlog
        # A simulated network has no sockets: there connections are accepted, and wait unread.
        self._listening: list[socket.socket] = [
            each.dup() for each in server.sockets if hasattr(each, "dup")
        ]
        self._paused = False
        self._closed = False
        self._resuming: asyncio.Task[None] | None = None

    async def start_serving(self) -> None:
        """Start to accept connections."""
        for server in self._servers:
            await server.start_serving()

    def pause(self) -> None:
        """Accept no connections until `resume`; some may already have been."""
        if self._listening:
            self._paused = True
            self._close_servers()

    def resume(self) -> None:
        """Accept connections again."""
        if self._paused and not self._closed:
            self._paused = False
            if self._resuming is None:
                self._resuming = spawn(self._recreate(), "accepting connections")

    def close(self) -> None:
        """Stop to listen."""
        self._closed = True
        self._close_servers()
        for each in self._listening:
            each.close()
        self._listening = []

    def _close_servers(self) -> None:
        for server in self._servers:
            server.close()
        self._servers = []

    async def _recreate(self) -> None:
        try:
            while not self._servers and not self._paused and not self._closed:
                try:
                    for listening in list(self._listening):
                        self._servers.append(await self._serve(listening.dup()))
                except OSError as failure:  # no descriptor is left
                    logger.error("connections cannot be accepted, trying again: %s", failure)
                    self._close_servers()
                    await asyncio.sleep(RETRY_S)
            if self._paused or self._closed:  # meanwhile
                self._close_servers()
        finally:
            self._resuming = None

    async def _serve(self, listening: socket.socket) -> asyncio.Server:
        try:
            return await asyncio.get_running_loop().create_server(
                self._factory, sock=listening, backlog=self._backlog
            )
        except OSError:
            listening.close()
            raise
