"""Connections from this broker to the others, for requests between brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from barnabas.broker.cluster.dialer import Dialer
from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.config.broker import BrokerOptions
from barnabas.metadata.cluster_view import ClusterView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.wire.schema import Message


class Peers:
    """One connection per broker, opened when it is first needed."""

    def __init__(
        self,
        broker_id: int,
        cluster: ClusterView,
        options: Callable[[], BrokerOptions],
        dialer: Dialer,
        client_id: str | None = None,
    ) -> None:
        """Name itself `broker-ID`, or as another client id if there is one."""
        self._client_id = client_id or f"broker-{broker_id}"
        self._broker_id = broker_id
        self._cluster = cluster
        self._options = options
        self._dialer = dialer
        self._connections: dict[Address, Connection] = {}
        self._locks: dict[Address, asyncio.Lock] = {}

    def apart(self, client_id: str) -> Peers:
        """Return further connections to the same brokers, which wait for none of these."""
        return Peers(self._broker_id, self._cluster, self._options, self._dialer, client_id)

    async def ask(
        self,
        broker_id: int,
        request: Message,
        timeout_ms: int,
        listener: str | None = None,
        *,
        version: int | None = None,
    ) -> Any:
        """Send a request to another broker, if possible on the given one of its listeners.

        Raises if the broker is not alive or does not respond.
        """
        address = self.address_of(broker_id, listener)
        async with self._locks.setdefault(address, asyncio.Lock()):
            connection = self._connections.get(address)
            if connection is None or connection.closed:
                connection = self._connections[address] = await self._dialer.open(
                    self._listener_of(broker_id, listener),
                    address,
                    client_id=self._client_id,
                    connect_timeout_ms_max=timeout_ms,
                    request_timeout_ms=timeout_ms,
                )
        return await connection.send(request, version=version, timeout_ms=timeout_ms)

    def address_of(self, broker_id: int, listener: str | None = None) -> Address:
        """Return the address of a broker for other brokers; raises if it is not alive."""
        view = self._cluster.brokers.get(broker_id)
        endpoint = None
        if view is not None:
            endpoint = view.endpoints.get(self._listener_of(broker_id, listener))
        if endpoint is None:
            raise RequestError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not alive")
        return Address(endpoint[0] or "127.0.0.1", endpoint[1])

    def _listener_of(self, broker_id: int, wanted: str | None) -> str:
        """Return the wanted listener if the broker has it, else the one for other brokers."""
        view = self._cluster.brokers.get(broker_id)
        if wanted is not None and view is not None and wanted in view.endpoints:
            return wanted
        return self._options().endpoints.inter_broker

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
