"""OAUTHBEARER (RFC 7628): a token that someone else has given out.

The provider is an object with a method `token`, plain or a coroutine, as those of kafka-python and
aiokafka; it may have a method `extensions` that gives further names and values. A plain `token` may
take its time (it asks a server, say), so it runs outside the loop.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from typing import Any

from barnabas.client.errors import AuthenticationFailedError
from barnabas.model.errors import ConfigError

_SEPARATOR = b"\x01"


class OAuthBearer:
    """Shows a token; on refusal the broker first tells why and wants that to be acknowledged."""

    def __init__(self, provider: Any) -> None:
        if not callable(getattr(provider, "token", None)):
            raise ConfigError(f"sasl.oauth.token.provider={provider!r}: must have a method token()")
        self._provider = provider
        self.done = False

    async def first(self) -> bytes:
        token = await self._token()
        if not isinstance(token, str) or not re.fullmatch(r"[\x21-\x7e]+", token):
            raise AuthenticationFailedError(
                "sasl.oauth.token.provider gave no token: a text without blanks is needed"
            )
        extensions = getattr(self._provider, "extensions", None)
        pairs: dict[str, str] = extensions() if callable(extensions) else {}
        fields = [f"auth=Bearer {token}", *(f"{name}={value}" for name, value in pairs.items())]
        return b"n,," + b"".join(_SEPARATOR + field.encode() for field in fields) + 2 * _SEPARATOR

    def next(self, challenge: bytes) -> bytes:
        if challenge:
            return _SEPARATOR
        self.done = True
        return b""

    async def _token(self) -> object:
        if inspect.iscoroutinefunction(self._provider.token):
            return await self._provider.token()
        loop = asyncio.get_running_loop()
        token = await loop.run_in_executor(None, self._provider.token)
        return await token if inspect.isawaitable(token) else token
