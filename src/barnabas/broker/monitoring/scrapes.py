"""Scrapes in progress: one at a time, shared by all that ask for the same within a second.

A scrape is written in slices between which the loop serves clients, into a list of chunks. Each
connection sends the list at its own speed, so that a slow reader holds no other one up, and costs
no more memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from http import HTTPStatus

from barnabas.broker.loop import spawn
from barnabas.broker.monitoring.http_request import BadRequest
from barnabas.records.compression import gzip_packer

logger = logging.getLogger("barnabas.metrics")

FRESH_S = 1.0
"""How long a scrape answers all that ask for the same."""
WAITING_MAX = 16
GZIP_LEVEL = 1

Writing = Callable[[], Awaitable[Iterator[bytes]]]
"""Begins a scrape: returns its chunks, with b"" where the loop may go on."""


class BrokenOff(ConnectionError):
    """The rest of an answer is missing: its connection must not end as if it were complete."""


class Scrape:
    """The bytes of one scrape, while they are written and after."""

    def __init__(self, *, packed: bool) -> None:
        self._chunks: list[bytes] = []
        self._packer = gzip_packer(GZIP_LEVEL) if packed else None
        self._change: asyncio.Future[None] | None = None
        self.done = False
        self.failed = False
        self.ended_s = 0.0

    def add(self, chunk: bytes) -> None:
        """Add what was written."""
        if self._packer is not None:
            chunk = self._packer.compress(chunk)
        if chunk:
            self._chunks.append(chunk)
            self._wake()

    def end(self, now_s: float, *, failed: bool = False) -> None:
        """End the list; what comes after a failure is missing."""
        if not failed and self._packer is not None:
            self._chunks.append(self._packer.flush())
        self.done, self.failed, self.ended_s = True, failed, now_s
        self._wake()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield all chunks as they are written; raise if some never will be."""
        index = 0
        while True:
            while index < len(self._chunks):
                yield self._chunks[index]
                index += 1
            if self.failed:
                raise BrokenOff("the scrape failed")
            if self.done:
                return
            if self._change is None:
                self._change = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._change)  # others wait for it, too

    def _wake(self) -> None:
        change, self._change = self._change, None
        if change is not None:
            change.set_result(None)


class Scrapes:
    """All scrapes of one broker."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives seconds."""
        self._clock = clock
        self._recent: dict[Hashable, Scrape] = {}
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def scrape(self, key: Hashable, writing: Writing, *, packed: bool) -> Scrape:
        """Return the scrape of a key: a fresh one if there is one, else a new one.

        Raise BadRequest if too many wait for their turn.
        """
        key = key, packed
        self._forget()
        known = self._recent.get(key)
        if known is not None:
            return known
        if len(self._tasks) >= WAITING_MAX:
            raise BadRequest(
                HTTPStatus.SERVICE_UNAVAILABLE, f"{len(self._tasks)} other scrapes wait already"
            )
        scrape = self._recent[key] = Scrape(packed=packed)
        task = spawn(self._write(scrape, writing), "a scrape")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return scrape

    async def stop(self) -> None:
        """Cancel the scrapes in progress."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._recent.clear()

    async def _write(self, scrape: Scrape, writing: Writing) -> None:
        failed = True
        try:
            chunks = await writing()
            async with self._turn:
                for chunk in chunks:
                    scrape.add(chunk)
                    await asyncio.sleep(0)  # the loop goes on between two slices
            failed = False
        except Exception:
            logger.exception("metrics: the scrape was broken off")
        finally:
            scrape.end(self._clock(), failed=failed)
            # Bytes that nobody may ask for again are not kept until the next scrape.
            loop = asyncio.get_running_loop()
            loop.call_later(FRESH_S, self._forget)

    def _forget(self) -> None:
        now_s = self._clock()
        for key, scrape in list(self._recent.items()):
            if scrape.done and (scrape.failed or now_s - scrape.ended_s >= FRESH_S):
                del self._recent[key]
