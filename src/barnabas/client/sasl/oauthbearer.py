"""OAUTHBEARER (RFC 7628): a token issued by a third party.

The provider is an object with a method `token`, a function or a coroutine, as in kafka-python and
aiokafka, or a function that returns the token; it may have a method `extensions` that returns
further names and values. A plain function may block (it asks a server, say), so it runs outside the
loop. Whatever it raises is an `AuthenticationFailedError` to the client.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable
from typing import Any

from barnabas.client.errors import AuthenticationFailedError, ConnectError
from barnabas.model.errors import ConfigError

_SEPARATOR = b"\x01"


class OAuthBearer:
    """Sends a token; on rejection the broker sends the reason first and expects a reply to it."""

    def __init__(self, provider: Any) -> None:
        give = getattr(provider, "token", provider)
        if not callable(give):
            raise ConfigError(
                f"sasl.oauth.token.provider={provider!r}: must have a method token(), or be a "
                "function that returns the token"
            )
        self._give: Callable[[], Any] = give
        self._provider = provider
        self.done = False

    async def first(self) -> bytes:
        try:
            token = await self._token()
            extensions = getattr(self._provider, "extensions", None)
            pairs: dict[str, str] = extensions() if callable(extensions) else {}
        except (AuthenticationFailedError, ConnectError):  # its own, with the reason
            raise
        except Exception as failure:  # user code may raise anything
            raise AuthenticationFailedError(
                f"sasl.oauth.token.provider failed: {failure!r}"
            ) from failure
        if not isinstance(token, str) or not re.fullmatch(r"[\x21-\x7e]+", token):
            raise AuthenticationFailedError(
                "sasl.oauth.token.provider: the token must be a string without blanks"
            )
        fields = [f"auth=Bearer {token}", *(f"{name}={value}" for name, value in pairs.items())]
        return b"n,," + b"".join(_SEPARATOR + field.encode() for field in fields) + 2 * _SEPARATOR

    async def next(self, challenge: bytes) -> bytes:
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
