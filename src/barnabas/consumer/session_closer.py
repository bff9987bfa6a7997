"""Closing fetch sessions (KIP-227), so that brokers need not remember them.

A session that is merely abandoned fills a slot in its broker's cache until another needs it. The
final fetch names the session and nothing else, so the response is immediate; it is sent over the
open connection with the least load, since a fetch that waits for records would hold it up. Nothing
depends on the response: a broker that cannot be reached evicts the session later. Runs on the
loop.
"""

from __future__ import annotations

import asyncio

from barnabas.client.cluster_client import ClusterClient
from barnabas.consumer.fetch_plan import CHANNELS
from barnabas.consumer.fetch_session import FetchSession
from barnabas.model.errors import BarnabasError
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse


class SessionCloser:
    """Closes the sessions of one consumer, and waits for the responses of the brokers."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._unanswered = 0
        self._all_answered = asyncio.Event()
        self._all_answered.set()

    def close(self, node_id: int, session: FetchSession) -> None:
        """End the session with a broker, if there is one, and notify a connected broker."""
        plan = session.end()
        if plan is None:
            return
        usable = [self._client.usable(node_id, channel=channel) for channel in ("", *CHANNELS)]
        connections = [connection for connection in usable if connection is not None]
        if not connections:
            return
        self._unanswered += 1
        self._all_answered.clear()
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, session_id=plan.session_id, session_epoch=plan.epoch
        )
        min(connections, key=lambda connection: connection.load).submit(request, self._answered)

    async def wait(self, timeout_ms: float) -> None:
        """Wait until every broker has responded or is lost, or until the time is up."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._all_answered.wait()
        except TimeoutError:
            pass

    def _answered(self, response: FetchResponse | None, failure: BarnabasError | None) -> None:
        self._unanswered -= 1
        if not self._unanswered:
            self._all_answered.set()
