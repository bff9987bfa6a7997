"""OAUTHBEARER (RFC 7628): a token that someone else has given out.

The provider is an object with a method `token`, plain or a coroutine, as those of kafka-python and
aiokafka, or a function that gives the token; it may have a method `extensions` that gives further
names and values. A plain one may take its time (it asks a server, say), so it runs outside the
loop. Whatever it raises is an `AuthenticationFailedError` to the client.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable
from typing import Any

from barnabas.client.errors import AuthenticationFailedError
from barnabas.model.errors import ConfigError

_SEPARATOR = b"\x01"


class OAuthBearer:
    """Shows a token; on refusal the broker first tells why and wants that to be acknowledged."""

    def __init__(self, provider: Any) -> None:
        give = getattr(provider, "token", provider)
        if not callable(give):
            raise ConfigError(
                f"sasl.oauth.token.provider={provider!r}: must have a method token(), or be a "
                "function that gives the token"
            )
        self._give: Callable[[], Any] = give
        self._provider = provider
        self.done = False

    async def first(self) -> bytes:
        try:
            token = await self._token()
            extensions = getattr(self._provider, "extensions", None)
            pairs: dict[str, str] = extensions() if callable(extensions) else {}
        except Exception as failure:  # of the user's code, which may raise anything
            raise AuthenticationFailedError(
                f"sasl.oauth.token.provider failed: {failure!r}"
            ) from failure
        if not isinstance(token, str) or not re.fullmatch(r"[\x21-\x7e]+", token):
            raise AuthenticationFailedError(
                "sasl.oauth.token.provider gave no token: a string without blanks is needed"
            )
        fields = [f"auth=Bearer {token}", *(f"{name}={value}" for name, value in pairs.items())]
        return b"n,," + b"".join(_SEPARATOR + field.encode() for field in fields) + 2 * _SEPARATOR

    def next(self, challenge: bytes) -> bytes:
        if challenge:
            return _SEPARATOR
        self.done = True
        return b""

    async def _token(self) -> object:
        if inspect.iscoroutinefunction(self._give):
            return await self._give()
        loop = asyncio.get_running_loop()
        token = await loop.run_in_executor(None, self._give)
        return await token if inspect.isawaitable(token) else token
