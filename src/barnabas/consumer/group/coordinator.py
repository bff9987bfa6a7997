"""Connections to the coordinator of a group, wherever it is by now.

A broker handles the requests of one connection in order: a heartbeat behind a fetch that waits for
records, or behind a JoinGroup that waits for other members, would be too late. So a group has
connections of its own, one for immediate responses and one for joins.
"""

from __future__ import annotations

import asyncio
from typing import Final

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.request_errors import request_error
from barnabas.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

LAST_SINGLE_VERSION: Final = 3
"""Later versions take several keys in one request."""

GROUP: Final = 0
"""The kind of key that a group id is."""

PROMPT_CHANNEL: Final = "group"
JOIN_CHANNEL: Final = "join"


class Coordinator:
    """Finds the coordinator of one group."""

    def __init__(self, cluster_client: ClusterClient, group_id: str) -> None:
        self.node_id: int | None = None
        self.lost_because: str | None = None
        """Why the previous coordinator was given up."""
        self._client = cluster_client
        self._group_id = group_id
        self._finding = asyncio.Lock()

    async def connection(self, channel: str = PROMPT_CHANNEL) -> Connection:
        """Return a connection to the coordinator; raises mostly retriable errors."""
        async with self._finding:
            if self.node_id is None:
                self.node_id = await self._find()
            node_id = self.node_id
        try:
            return await self._client.connection(node_id, channel=channel)
        except RequestError as failure:
            if failure.code is not ErrorCode.BROKER_NOT_AVAILABLE:
                raise
            self.lost(str(failure))
            raise request_error(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(failure)) from failure

    def lost(self, why: str) -> None:
        """Look up the coordinator again before the next request."""
        self.node_id = None
        self.lost_because = why

    async def _find(self) -> int:
        connection = await self._client.connection()
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
