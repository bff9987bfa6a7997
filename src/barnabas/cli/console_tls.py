"""TLS of the console: certificates of browsers, and files that are renewed while it runs."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

from barnabas.broker.loop import spawn
from barnabas.broker.network.listener_tls import ListenerTls
from barnabas.config.listeners import Endpoint, SecurityProtocol
from barnabas.security.principal import Principal

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

LISTENER = "CONSOLE"
"""Its TLS options may be set apart from those of other listeners: listener.name.console.ssl.*."""
RENEWAL_S = 10.0
"""How often files with certificates are looked at."""


class ConsoleTls:
    """What the TLS connections of a console have in common."""

    def __init__(self, broker: Broker) -> None:
        """Load key and trust; raise ConfigError if they are not usable."""
        self._broker = broker
        self._listener = ListenerTls(
            Endpoint(LISTENER, "", 0, SecurityProtocol.SSL),
            broker.options,
            None,
            broker.audit,
            option="barnabas.console.ssl.enable=true",
        )
        self.context = self._listener.context
        """Of the server; each of its handshakes uses what was loaded last."""
        self.context.sni_callback = self._use_newest
        self._timer: asyncio.TimerHandle | None = None
        self._renewal: asyncio.Task[None] | None = None

    def principal_of(self, der: bytes) -> Principal:
        """Return whom a certificate names; raise TlsError if nobody."""
        return self._listener.named(der)

    def start(self) -> None:
        """Look for changed files from now on."""
        self._timer = asyncio.get_running_loop().call_later(RENEWAL_S, self._look)

    async def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.wait([self._renewal])

    def _look(self) -> None:
        self._renewal = spawn(
            self._listener.renew(self._broker.options), "renewing the console's certificate"
        )
        self.start()

    def _use_newest(self, connection: ssl.SSLObject, name: str | None, old: ssl.SSLContext) -> None:
        # A server keeps the context that it began with.
        connection.context = self._listener.context
