"""The way to the broker that coordinates a group, wherever it is by now.

Connections to it are this group's own: the broker answers a connection's requests in order, and a
heartbeat behind a fetch that waits for records, or behind a JoinGroup that waits for other members,
would come too late. So there is one connection for what is answered at once, and another while a
join waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from barnabas.client.connection import Connection
from barnabas.client.switchboard import Switchboard
from barnabas.model.error_codes import ErrorCode
from barnabas.model.request_errors import request_error
from barnabas.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

LAST_SINGLE_VERSION = 3
"""Later versions ask for several keys at once."""

GROUP = 0
"""The kind of key that a group id is."""


class Coordinator:
    """Finds the coordinator of one group and keeps connections to it."""

    def __init__(self, switchboard: Switchboard, group_id: str) -> None:
        self.node_id: int | None = None
        self.lost_because: str | None = None
        """Why the last one was given up."""
        self._switchboard = switchboard
        self._group_id = group_id
        self._connections: list[Connection] = []
        self._waiting: list[Connection] = []
        self._opening = asyncio.Lock()

    async def connection(self) -> Connection:
        """Return a connection for what is answered at once; raises while there is none."""
        async with self._opening:
            self._connections = [each for each in self._connections if not each.closed]
            for connection in self._connections:
                if connection not in self._waiting:
                    return connection
            if self.node_id is None:
                self.node_id = await self._find()
            connection = await self._switchboard.separate(self.node_id)
            self._connections.append(connection)
            return connection

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[Connection]:
        """Lend a connection for a request that may wait long; others get another meanwhile."""
        connection = await self.connection()
        self._waiting.append(connection)
        try:
            yield connection
        finally:
            self._waiting.remove(connection)

    def lost(self, why: str) -> None:
        """Look for the coordinator again before the next request."""
        self.node_id = None
        self.lost_because = why
        self.close()

    def close(self) -> None:
        """Close the connections."""
        connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()

    async def _find(self) -> int:
        connection = await self._switchboard.connection()
        version = connection.version_of(FindCoordinatorRequest)
        if version > LAST_SINGLE_VERSION:
            request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[self._group_id])
        else:
            request = FindCoordinatorRequest(key=self._group_id)
        response: FindCoordinatorResponse = await connection.send(request, version=version)
        found = response.coordinators[0] if version > LAST_SINGLE_VERSION else response
        if found.error_code != ErrorCode.NONE:
            code = ErrorCode.of(found.error_code)
            raise request_error(
                found.error_code,
                f"coordinator of group {self._group_id!r}: {found.error_message or code.meaning}",
            )
        return found.node_id
