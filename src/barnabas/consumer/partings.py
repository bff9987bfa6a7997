"""Telling brokers that fetch sessions are over (KIP-227), so that they need not remember them.

A session that is merely left fills a place in its broker's cache until another one needs it. The
last fetch names the session and nothing else, so it is answered at once; and it goes over whichever
open connection has the least to do, since a fetch that waits for records would hold it up. Nothing
depends on the answer: a broker that cannot be reached forgets the session by itself. Runs on the
loop.
"""

from __future__ import annotations

import asyncio

from barnabas.client.cluster_client import ClusterClient
from barnabas.consumer.fetch_plan import CHANNELS
from barnabas.consumer.fetch_session import FetchSession
from barnabas.model.errors import BarnabasError
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse


class Partings:
    """The sessions that a consumer has ended, until their brokers have heard of it."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._unheard = 0
        self._all_heard = asyncio.Event()
        self._all_heard.set()

    def part(self, node_id: int, session: FetchSession) -> None:
        """End the session with a broker, if there is one, and say so, if there is a way to it."""
        plan = session.end()
        if plan is None:
            return
        ways = [self._client.usable(node_id, channel=channel) for channel in ("", *CHANNELS)]
        way = min((way for way in ways if way is not None), key=lambda way: way.load, default=None)
        if way is None:
            return
        self._unheard += 1
        self._all_heard.clear()
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, session_id=plan.session_id, session_epoch=plan.epoch
        )
        way.submit(request, self._heard)

    async def heard(self, timeout_ms: float) -> None:
        """Wait until every broker has answered or is lost, or until the time is up."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._all_heard.wait()
        except TimeoutError:
            pass

    def _heard(self, response: FetchResponse | None, failure: BarnabasError | None) -> None:
        self._unheard -= 1
        if not self._unheard:
            self._all_heard.set()
