"""Connections from this broker to listeners of others, secured as the listener demands.

Every path between brokers dials here: requests, replication, the controller's channels.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable
from typing import Any

from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.client.opening import Login
from barnabas.config.broker import BrokerOptions
from barnabas.config.listeners import SecurityProtocol
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError


class Dialer:
    """Opens connections to the listeners of other brokers."""

    def __init__(
        self,
        options: Callable[[], BrokerOptions],
        tls_to: Callable[[str], ssl.SSLContext | None],
        login_to: Callable[[str], Login | None],
    ) -> None:
        """Ask `tls_to` and `login_to` how a listener of this name is secured; None if it is not."""
        self._options = options
        self._tls_to = tls_to
        self._login_to = login_to

    async def open(
        self,
        listener: str,
        address: Address,
        *,
        client_id: str,
        request_timeout_ms: int,
        connect_timeout_ms_max: int | None = None,
        socket_options: Iterable[tuple[int, int, Any]] = (),
    ) -> Connection:
        """Return a connection to a listener; raise if it cannot be opened or secured."""
        options = self._options()
        timeout_ms = options.socket_connection_setup_timeout_ms
        if connect_timeout_ms_max is not None:
            timeout_ms = min(timeout_ms, connect_timeout_ms_max)
        return await Connection.open(
            address,
            client_id=client_id,
            connect_timeout_ms=timeout_ms,
            request_timeout_ms=request_timeout_ms,
            tls=self._tls(listener, options),
            login=self._login_to(listener),
            socket_options=socket_options,
        )

    def _tls(self, listener: str, options: BrokerOptions) -> ssl.SSLContext | None:
        """Return the context, from the listener of the same name that this broker has itself."""
        protocol = next(
            (each.protocol for each in options.endpoints.bind if each.name == listener),
            SecurityProtocol.PLAINTEXT,
        )
        context = self._tls_to(listener)
        if protocol.uses_tls and context is None:
            raise RequestError(
                ErrorCode.BROKER_NOT_AVAILABLE, f"listener {listener} is not open on this broker"
            )
        return context
