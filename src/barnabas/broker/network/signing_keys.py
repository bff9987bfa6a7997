"""Fetches the keys that sign bearer tokens, from a URL or a file, at the start and again and again.

A fetch that fails at the start fails the start. Later the keys stay as they were, and the fetch is
repeated with growing pauses.
"""

from __future__ import annotations

import asyncio
import logging
import os
from concurrent.futures import ThreadPoolExecutor

from barnabas.broker.loop import offload, spawn
from barnabas.client.download import DownloadFailed, check_url, download, read_file
from barnabas.model.errors import ConfigError
from barnabas.security.sasl.jwks import SigningKeys

logger = logging.getLogger("barnabas.authentication")

OPTION = "sasl.oauthbearer.jwks.endpoint.url"
FILE_LOOK_MS = 10_000
"""How often a file is looked at."""


class FetchedKeys:
    """The keys behind one URL, kept up to date until `stop`."""

    def __init__(self, url: str, refresh_ms: int, backoff_ms: int, backoff_ms_max: int) -> None:
        self._path = check_url(url, OPTION)
        self._url = url
        self._refresh_ms = refresh_ms
        self._backoff_ms = backoff_ms
        self._backoff_ms_max = backoff_ms_max
        self._modified: tuple[int, int] | None = None
        self._wished = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        # Its own thread: a server that does not answer must not hold up the broker's files.
        self._thread = ThreadPoolExecutor(1, "jwks")
        self.keys = SigningKeys(f"{OPTION}={url}", self._wished.set)

    async def start(self) -> None:
        """Fetch the keys and keep fetching; raise ConfigError if there are none to begin with."""
        if self._task is None:
            await self._fetch()
            self._task = spawn(self._keep(), "fetching the keys of bearer tokens")

    def begin(self) -> None:
        """Start to fetch in the background: until that succeeds there are no keys."""
        self._wished.set()
        self._task = spawn(self._keep(), "fetching the keys of bearer tokens")

    async def stop(self) -> None:
        """Fetch no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._thread.shutdown(wait=False)

    async def _keep(self) -> None:
        failures = 0
        while True:
            await self._pause(failures)
            try:
                await self._fetch()
            except ConfigError as failure:
                failures += 1
                if failures == 1:
                    logger.error("keys of bearer tokens stay as they were: %s", failure)
            else:
                if failures:
                    logger.info("keys of bearer tokens fetched again from %s", self._url)
                failures = 0

    async def _pause(self, failures: int) -> None:
        """Wait until the keys are to be fetched; a token of an unknown key makes it earlier."""
        if failures:
            pause_ms = min(self._backoff_ms * 2 ** min(failures - 1, 30), self._backoff_ms_max)
            await asyncio.sleep(pause_ms / 1000)
            return
        pause_ms = self._refresh_ms
        if self._path is not None:
            pause_ms = min(pause_ms, FILE_LOOK_MS)
        try:
            async with asyncio.timeout(pause_ms / 1000):
                await self._wished.wait()
        except TimeoutError:
            return
        finally:
            self._wished.clear()

    async def _fetch(self) -> None:
        try:
            text = await offload(self._thread, self._read)
        except DownloadFailed as failure:
            raise ConfigError(f"{self.keys.where}: cannot be fetched: {failure}") from failure
        if text is not None:
            self.keys.load(text)

    def _read(self) -> bytes | None:
        """Return the text; None if the file has not changed."""
        if self._path is None:
            return download(self._url, headers={"Accept": "application/json"})
        try:
            status = os.stat(self._path)
        except OSError as failure:
            raise DownloadFailed(str(failure)) from failure
        modified = status.st_mtime_ns, status.st_ino
        if modified == self._modified:
            return None
        text = read_file(self._path)
        self._modified = modified
        return text
