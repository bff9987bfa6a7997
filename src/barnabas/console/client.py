"""An admin client whose requests pass the door, so that `barnabas.admin` works as it is.

    client = DoorClient(door, visitor)
    topics = await describe_topics(client, ["orders"])

It finds controllers, coordinators and leaders as any client does; instead of a connection to a
broker there is the way through the door with that broker's id.
"""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.client.addresses import Address
from barnabas.client.cluster_client import ANY, ClusterClient, Destination
from barnabas.client.connection import Connection
from barnabas.client.connection_stats import ConnectionStats
from barnabas.client.negotiation import PeerVersions
from barnabas.console.door import CLIENT_ID, Door, Visitor
from barnabas.wire.apis import API_BY_KEY
from barnabas.wire.schema import Message

REQUEST_TIMEOUT_MS = 10_000


class DoorConnection(Connection):
    """What stands for a connection: the way through the door to one broker."""

    def __init__(self, door: Door, visitor: Visitor, broker_id: int) -> None:
        super().__init__(
            Address(f"broker-{broker_id}", broker_id),
            CLIENT_ID,
            REQUEST_TIMEOUT_MS,
            1,
            0,
            ConnectionStats(),
            lambda: None,
        )
        self.versions = PeerVersions(
            f"broker {broker_id}",
            [
                (key, api.stable_versions.first, api.stable_versions.last)
                for key, api in API_BY_KEY.items()
            ],
        )
        self._door = door
        self._visitor = visitor
        self._broker_id = broker_id

    async def send(
        self, request: Message, *, version: int | None = None, timeout_ms: float | None = None
    ) -> Any:
        """Send a request through the door."""
        return await self._door.ask(
            self._visitor,
            request,
            to=self._broker_id,
            version=version,
            timeout_ms=timeout_ms or REQUEST_TIMEOUT_MS,
        )


class DoorClient(ClusterClient):
    """A cluster client of one visitor; it has no connections, and need not be closed."""

    def __init__(self, door: Door, visitor: Visitor) -> None:
        super().__init__([], client_id=CLIENT_ID, request_timeout_ms=REQUEST_TIMEOUT_MS)
        self._door = door
        self._visitor = visitor
        self._ways: dict[int, DoorConnection] = {}

    async def connection(self, to: Destination = ANY, *, channel: str = "") -> Connection:
        """Return the way to a destination, with new metadata if it is not known."""
        if to is ANY:
            return self._way(self._door.broker_id)
        node_id = self._node_id(to)
        if node_id is None or node_id not in self.cluster.brokers:
            await self._address(to)  # refreshes, or raises
            node_id = self._node_id(to)
        assert node_id is not None
        return self._way(node_id)

    def _way(self, broker_id: int) -> DoorConnection:
        way = self._ways.get(broker_id)
        if way is None:
            asyncio.get_running_loop()
            way = self._ways[broker_id] = DoorConnection(self._door, self._visitor, broker_id)
        return way
