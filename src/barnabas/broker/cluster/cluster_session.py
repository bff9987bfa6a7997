"""A broker's place in the cluster, kept across sessions with the coordination service.

A session that expires takes the broker's registration with it: for the cluster the broker is
dead. It opens a new session, however long the service stays away, and enters the cluster again;
meanwhile clients are sent elsewhere (`silence`). A broker that cannot enter (its id is another's by
now) gives up.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from barnabas.coordination.contract import (
    Coordination,
    ServiceUnavailable,
    SessionExpired,
    SessionState,
)
from barnabas.model.errors import BarnabasError

logger = logging.getLogger("barnabas.registration")


class ClusterSession:
    """Watches one session, and opens the next."""

    def __init__(
        self,
        coordination: Coordination,
        leave: Callable[[], Awaitable[None]],
        enter: Callable[[], Awaitable[None]],
        give_up: Callable[[str], Awaitable[None]],
    ) -> None:
        """Call `leave` when a session has ended, before another is sought; `enter` in each new one.

        `give_up` is called with the reason if entering is refused.
        """
        self._coordination = coordination
        self._leave = leave
        self._enter = enter
        self._give_up = give_up
        self._renewal: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Watch from now on; a session that has ended while nobody listened is renewed, too."""
        self._coordination.add_session_listener(self._hear)
        self._hear(self._coordination.state)

    def stop(self) -> None:
        """Care no longer."""
        self._coordination.remove_session_listener(self._hear)
        if self._renewal is not None:
            # The one that gives up stops us from within, and goes on.
            if self._renewal is not asyncio.current_task():
                self._renewal.cancel()
            self._renewal = None

    def _hear(self, state: SessionState) -> None:
        if state is SessionState.EXPIRED and self._renewal is None:
            self._renewal = asyncio.get_running_loop().create_task(self._renew())

    async def _renew(self) -> None:
        while True:
            try:
                await self._leave()
                await self._coordination.start()
                await self._enter()
            except SessionExpired:
                logger.warning("the new session ended before the broker was back in the cluster")
                continue
            except ServiceUnavailable as failure:
                logger.warning("still without the cluster: %s", failure)
                continue
            except BarnabasError as failure:
                await self._give_up(str(failure))
                return
            except Exception as bug:  # noqa: BLE001 - the loop tells of it
                # One that served on would be dead for the cluster, and nobody would know why.
                asyncio.get_running_loop().call_exception_handler(
                    {"message": "the cluster cannot be entered again", "exception": bug}
                )
                await self._give_up(f"the cluster cannot be entered again: {bug!r}")
                return
            # A session that ended meanwhile was not heard of: this task was taken to be at it.
            if self._coordination.state is not SessionState.EXPIRED:
                break
        self._renewal = None
        logger.info("the broker is back in the cluster, with a new registration")
