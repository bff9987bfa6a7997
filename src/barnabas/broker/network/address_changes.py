"""Listeners that change while the broker runs: first the sockets, then the registration.

Changed options arrive by requests and notices; a single task applies the newest ones. If a
listener cannot be opened, sockets and registration stay as they were. An update of the
registration that fails is retried, or made by the registration of the next session.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from barnabas.broker.cluster.registration import Registration
from barnabas.broker.loop import spawn
from barnabas.broker.network.socket_server import SocketServer
from barnabas.config.broker import BrokerOptions
from barnabas.config.listeners import Listeners
from barnabas.coordination.contract import SessionExpired
from barnabas.metadata.cluster_view import ClusterView
from barnabas.model.errors import BarnabasError, ConfigError

logger = logging.getLogger("barnabas.network")

RETRY_S = 0.5


class AddressChanges:
    """Applies a broker's changed options to its sockets and its registration."""

    def __init__(
        self,
        network: SocketServer,
        registration: Registration,
        cluster: ClusterView,
        options: Callable[[], BrokerOptions],
        now_ms: Callable[[], int],
    ) -> None:
        self._network = network
        self._registration = registration
        self._cluster = cluster
        self._options = options
        self._now_ms = now_ms
        self._tried: Listeners | None = None
        """The last ones that were opened, or could not be; None as long as none have changed."""
        self._task: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Apply what has changed, if anything; repeating the call is a no-op."""
        if self._task is None and self._is_due():
            self._task = spawn(self._act(), "the listener change")
            self._task.add_done_callback(self._done)

    async def stop(self) -> None:
        """Apply no further changes."""
        task = self._task
        if task is not None:
            task.remove_done_callback(self._done)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _is_due(self) -> bool:
        return self._is_untried() or not self._is_registered()

    def _is_untried(self) -> bool:
        return self._options().endpoints != (self._tried or self._network.listeners)

    def _is_registered(self) -> bool:
        return self._registration.registered == self._network.reached_at

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and task.exception() is None and self._is_due():
            self.look()

    async def _act(self) -> None:
        options = self._options()
        if self._is_untried():
            self._tried = options.endpoints
            try:
                await self._network.relisten(options)
            except ConfigError as failure:
                logger.error("listeners unchanged: %s", failure)
        while not self._is_registered():
            try:
                view = await self._registration.update(*self._network.reached_at, self._now_ms())
                self._cluster.brokers[view.broker_id] = view
            except SessionExpired:
                return  # the next session registers with the new ones
            except BarnabasError as failure:
                logger.warning(
                    "registration still has the old listeners, retry in %s s: %s", RETRY_S, failure
                )
                await asyncio.sleep(RETRY_S)
