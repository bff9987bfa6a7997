"""A mirror: sessions, one after another, until one is done or nothing helps any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.client.retry import Backoff
from barnabas.mirror.failures import is_fenced, is_passing
from barnabas.mirror.ground import Engine, MirrorOptions
from barnabas.mirror.progress import Progress
from barnabas.mirror.session import Session
from barnabas.model.errors import BarnabasError


class Mirror:
    """Runs sessions; `progress` may be looked at any time."""

    def __init__(
        self,
        options: MirrorOptions,
        engine: Engine,
        *,
        backoff: Backoff,
        patience_ms: float,
        tell: Callable[[str], None],
        now_ms: float,
    ) -> None:
        self.progress = Progress(now_ms)
        self._options = options
        self._engine = engine
        self._backoff = backoff
        self._patience_ms = patience_ms
        self._tell = tell

    async def run(self) -> None:
        """Copy until done; raise what is final, and what passes only after `patience_ms`."""
        loop = asyncio.get_running_loop()
        failures, since_s, before = 0, 0.0, 0
        began = False
        while True:
            session = Session(self._options, self._engine, self.progress, self._tell)
            try:
                await session.run()
                return
            except BarnabasError as failure:
                if is_fenced(failure):
                    failure.add_note(
                        "another mirror of this name has started, or this one was stopped for "
                        "longer than transaction.timeout.ms; two mirrors need two --name"
                    )
                # Clusters that were never reached are more likely misspelt than out of order.
                began = began or session.began
                if not began or not is_passing(failure):
                    raise
                if not failures or self.progress.transactions > before:
                    failures, since_s = 0, loop.time()
                before = self.progress.transactions
                failures += 1
                pause_ms = self._backoff.delay_ms(failures)
                if (loop.time() - since_s) * 1000 + pause_ms > self._patience_ms:
                    raise
                self.progress.restarts += 1
                self._tell(f"{failure}; starting again from what is committed")
                await asyncio.sleep(pause_ms / 1000)
