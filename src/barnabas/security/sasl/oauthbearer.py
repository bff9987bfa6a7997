"""OAUTHBEARER (RFC 7628): a token that a third party has issued.

client  n,,^Aauth=Bearer <token>^A^A                    ^A is the byte 1
broker  empty, or {"status":"invalid_token"}
client  ^A, to the latter; then the login fails with that text
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from barnabas.model.errors import BarnabasError
from barnabas.security.sasl.exchange import Login, Rejected, Step

Validate = Callable[[str, int], Login]
"""Checks a token at a time of the wall clock; raises InvalidToken."""

_MESSAGE = re.compile(
    rb"n,(?:a=(?P<authorization_id>[^\x00,\x01]+))?,\x01(?P<pairs>(?:[A-Za-z]+=[^\x00\x01]*\x01)+)\x01"
)
_BEARER = re.compile(rb"(?i:bearer) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")


class InvalidToken(BarnabasError):
    """A token that lets nobody in; the message is for the log and has nothing of the token."""

    def __init__(self, why: str, scope: str | None = None) -> None:
        super().__init__(why)
        self.scope = scope
        """The scope that the token lacks; it is valid otherwise."""


class OAuthBearer:
    """One login by a token."""

    def __init__(self, validate: Validate) -> None:
        self._validate = validate
        self._refusal: Rejected | None = None

    def step(self, message: bytes, now_ms: int) -> Step:
        if self._refusal is not None:
            raise self._refusal  # whatever the client says to it
        match = _MESSAGE.fullmatch(message)
        if match is None:
            raise Rejected("OAUTHBEARER message is malformed")
        pairs = [pair.split(b"=", 1) for pair in match["pairs"].split(b"\x01")[:-1]]
        bearer = [_BEARER.fullmatch(value) for name, value in pairs if name == b"auth"]
        if len(bearer) != 1 or bearer[0] is None:
            raise Rejected("OAUTHBEARER message has no bearer token")
        try:
            login = self._validate(bearer[0]["token"].decode(), now_ms)
        except InvalidToken as failure:
            return self._refused(failure)
        wanted = match["authorization_id"]
        if wanted is not None and wanted != login.name.encode():
            raise Rejected("authorization id differs from the token's principal")
        return Step(b"", login)

    def _refused(self, failure: InvalidToken) -> Step:
        if failure.scope is None:
            text = json.dumps({"status": "invalid_token"}, separators=(",", ":"))
        else:
            # As Kafka writes it.
            text = f'{{"status":"insufficient_scope", "scope":{json.dumps(failure.scope)}}}'
        self._refusal = Rejected(f"token rejected: {failure}", text)
        return Step(text.encode(), refusal=str(self._refusal))
