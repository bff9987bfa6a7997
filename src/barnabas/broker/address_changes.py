"""Listeners that change while the broker runs: sockets first, then what the cluster is told.

Options come, one after the other, by requests and notices; one task at a time lets the newest
act. A listener that cannot be opened leaves all as they were, and the broker registered as it is
reached. What could not be told is told again, or by the registration of the next session.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from barnabas.broker.tasks import spawn
from barnabas.coordination.contract import SessionExpired
from barnabas.model.errors import BarnabasError, ConfigError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

logger = logging.getLogger("barnabas.listener")

RETRY_S = 0.5


class AddressChanges:
    """Brings a broker's sockets and its registration to what its options say."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._tried = broker.network.listeners
        self._task: asyncio.Task[None] | None = None

    def look(self) -> None:
        """See whether there is something to do: options or the registration may have changed."""
        if self._task is None and self._is_due():
            self._task = spawn(self._act(), "the change of listeners")
            self._task.add_done_callback(self._done)

    async def stop(self) -> None:
        """Change nothing more."""
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
                logger.error("listeners stay as they are: %s", failure)
        while not self._is_told():
            try:
                broker.cluster.brokers[broker.broker_id] = await broker.membership.announce(
                    *broker.network.reached_at, broker.now_ms()
                )
            except SessionExpired:
                return  # the next registration tells of it
            except BarnabasError as failure:
                logger.warning("the cluster does not know the broker's listeners yet: %s", failure)
                await asyncio.sleep(RETRY_S)
