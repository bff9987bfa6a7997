"""A bearer token that is fetched when it is needed, kept, and replaced before it expires.

Only logins use tokens, so that a login is when one is refreshed: after a part of its lifetime, as
the options sasl.login.refresh.* say. If that fails, the token is used as long as it is valid.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.client.errors import AuthenticationFailedError, ConnectError
from barnabas.client.sasl.bearer_token import BearerToken

logger = logging.getLogger("barnabas.client")

REPEAT_MS = 10_000
"""How long a token is used after its refresh has failed, before that is tried again."""


class RefreshRules(NamedTuple):
    """When a token is refreshed."""

    window_factor: float
    window_jitter: float
    min_period_s: int
    buffer_s: int

    def refresh_ms(self, token: BearerToken, now_ms: int, random: float) -> int:
        """Return when to refresh a token that was fetched now; `random` is between 0 and 1."""
        starts_ms = token.starts_ms if token.starts_ms is not None else now_ms
        part = self.window_factor + self.window_jitter * random
        refresh_ms = starts_ms + int((token.ends_ms - starts_ms) * part)
        earliest_ms = now_ms + self.min_period_s * 1000
        latest_ms = token.ends_ms - self.buffer_s * 1000
        if earliest_ms > latest_ms:  # too short a life for both
            return refresh_ms
        return max(earliest_ms, min(refresh_ms, latest_ms))


class RetryRules(NamedTuple):
    """How often an endpoint is asked that does not answer: pauses double until all time is used."""

    backoff_ms: int
    total_ms: int


class CachedToken:
    """The token of one client."""

    def __init__(
        self,
        fetch: Callable[[], BearerToken],
        refresh: RefreshRules,
        retry: RetryRules,
        now_ms: Callable[[], int],
        random: Callable[[], float],
        extensions: Mapping[str, str],
    ) -> None:
        """Call `fetch` in a thread for a token, which may raise ConnectError to be asked again."""
        self._fetch = fetch
        self._refresh = refresh
        self._retry = retry
        self._now_ms = now_ms
        self._random = random
        self._extensions = dict(extensions)
        self._held: BearerToken | None = None
        self._refresh_ms = 0
        self._one_at_a_time = asyncio.Lock()

    def extensions(self) -> dict[str, str]:
        """Return names and values that are sent with the token."""
        return self._extensions

    async def token(self) -> str:
        """Return a valid token."""
        async with self._one_at_a_time:
            held, now_ms = self._held, self._now_ms()
            if held is not None and now_ms < min(self._refresh_ms, held.ends_ms):
                return held.value
            try:
                held = await self._fetch_patiently()
            except (AuthenticationFailedError, ConnectError) as failure:
                if held is None or held.ends_ms <= self._now_ms():
                    raise
                logger.warning("bearer token not refreshed, the old one is used: %s", failure)
                self._refresh_ms = self._now_ms() + REPEAT_MS
                return held.value
            self._held = held
            self._refresh_ms = self._refresh.refresh_ms(held, self._now_ms(), self._random())
            return held.value

    async def _fetch_patiently(self) -> BearerToken:
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self._retry.total_ms / 1000
        pause_s = self._retry.backoff_ms / 1000
        while True:
            try:
                return await loop.run_in_executor(None, self._fetch)
            except ConnectError:
                left_s = end_s - loop.time()
                if left_s <= 0:
                    raise
                await asyncio.sleep(min(pause_s, left_s))
                pause_s *= 2
