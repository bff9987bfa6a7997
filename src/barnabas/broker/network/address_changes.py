"""Listeners that change while the broker runs: first the sockets, then the registration.

Changed options arrive by requests and notices; a single task applies the newest ones. If a
listener cannot be opened, sockets and registration stay as they were. An update of the
registration that fails is retried, or made by the registration of the next session.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from barnabas.broker.loop import spawn
from barnabas.coordination.contract import SessionExpired
from barnabas.model.errors import BarnabasError, ConfigError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

logger = logging.getLogger("barnabas.listener")

RETRY_S = 0.5


class AddressChanges:
    """Applies a broker's changed options to its sockets and its registration."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._tried = broker.network.listeners
        self._task: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Apply what has changed, if anything; repeating the call is a no-op."""
        if self._task is None and self._is_due():
            self._task = spawn(self._act(), "the change of listeners")
            self._task.add_done_callback(self._done)

    async def stop(self) -> None:
        """Apply no further changes."""
        task = self._task
        if task is not None:
            task.remove_done_callback(self._done)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _is_due(self) -> bool:
        broker = self._broker
        return broker.options.endpoints != self._tried or not self._is_told()

    def _is_told(self) -> bool:
        return self._broker.membership.told == self._broker.network.reached_at

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and task.exception() is None and self._is_due():
            self.look()

    async def _act(self) -> None:
        broker = self._broker
        if broker.options.endpoints != self._tried:
            self._tried = broker.options.endpoints
            try:
                await broker.network.relisten(broker.options)
            except ConfigError as failure:
                logger.error("listeners unchanged: %s", failure)
        while not self._is_told():
            try:
                broker.cluster.brokers[broker.broker_id] = await broker.membership.announce(
                    *broker.network.reached_at, broker.now_ms()
                )
            except SessionExpired:
                return  # the next session registers with the new ones
            except BarnabasError as failure:
                logger.warning(
                    "registration still has the old listeners, retry in %s s: %s", RETRY_S, failure
                )
                await asyncio.sleep(RETRY_S)
