"""The endpoint that issues bearer tokens (KIP-768), by OAuth's client credentials.

    POST <sasl.oauthbearer.token.endpoint.url>
    Authorization: Basic <clientId:clientSecret>
    grant_type=client_credentials&scope=<scope>

Secrets are in none of its errors. Asking blocks: it is work for a thread.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from barnabas.client.download import TIMEOUT_S, DownloadFailed, check_url, download, read_file
from barnabas.client.errors import AuthenticationFailedError, ConnectError
from barnabas.model.errors import ConfigError

if TYPE_CHECKING:
    import ssl

OPTION = "sasl.oauthbearer.token.endpoint.url"
FINAL = frozenset({*range(400, 408), *range(409, 416), 501, 505})
"""Statuses after which asking again is pointless."""


@dataclass(frozen=True, slots=True, repr=False)
class TokenEndpoint:
    """Where tokens come from, and the credentials for it."""

    url: str
    client_id: str
    client_secret: str
    scope: str | None = None
    connect_s_max: float = TIMEOUT_S
    read_s_max: float = TIMEOUT_S
    tls: ssl.SSLContext | None = None

    def fetch(self) -> str:
        """Return a token.

        Raise AuthenticationFailedError if it is refused, ConnectError if it may come later.
        """
        fields = {"grant_type": "client_credentials"}
        if self.scope:
            fields["scope"] = self.scope
        try:
            answer = download(
                self.url,
                body=urlencode(fields).encode(),
                headers={
                    "Accept": "application/json",
                    "Authorization": f"Basic {self._credentials()}",
                    "Content-Type": "application/x-www-form-urlencoded",
                },
                connect_s_max=self.connect_s_max,
                read_s_max=self.read_s_max,
                tls=self.tls,
            )
        except DownloadFailed as failure:
            if failure.status in FINAL:
                raise AuthenticationFailedError(
                    f"{OPTION}={self.url}: no token: {failure}{_code(failure.body)}"
                ) from None
            raise ConnectError(f"{OPTION}={self.url}: no token: {failure}") from failure
        return self._token(answer)

    def _credentials(self) -> str:
        return base64.b64encode(f"{self.client_id}:{self.client_secret}".encode()).decode()

    def _token(self, answer: bytes) -> str:
        try:
            token = json.loads(answer)["access_token"]
        except (ValueError, KeyError, TypeError):
            token = None
        if not isinstance(token, str) or not token.strip():
            raise AuthenticationFailedError(f"{OPTION}={self.url}: the answer has no access_token")
        return token


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file that another program keeps up to date with a token."""

    path: str

    def fetch(self) -> str:
        """Return the token; raise ConnectError if the file cannot be read now."""
        try:
            return read_file(self.path).decode("ascii").strip()
        except (DownloadFailed, UnicodeDecodeError) as failure:
            raise ConnectError(f"{OPTION}=file://{self.path}: no token: {failure}") from None


def token_endpoint(
    url: str,
    jaas: Mapping[str, str],
    option: str,
    *,
    connect_ms_max: int | None,
    read_ms_max: int | None,
    tls: ssl.SSLContext | None,
) -> TokenEndpoint | TokenFile:
    """Return what issues tokens; raise ConfigError if the JAAS entry `option` lacks credentials."""
    path = check_url(url, OPTION)
    if path is not None:
        return TokenFile(path)
    for name in ("clientId", "clientSecret"):
        if not jaas.get(name):
            raise ConfigError(f"{option}: needs {name} for {OPTION}={url}")
    return TokenEndpoint(
        url,
        jaas["clientId"],
        jaas["clientSecret"],
        jaas.get("scope"),
        connect_ms_max / 1000 if connect_ms_max is not None else TIMEOUT_S,
        read_ms_max / 1000 if read_ms_max is not None else TIMEOUT_S,
        tls,
    )


def _code(body: bytes) -> str:
    """Return OAuth's code of an error: the rest of the answer may repeat what we have sent."""
    try:
        code = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    known = isinstance(code, str) and re.fullmatch("[a-z_]{1,64}", code)
    return f" ({code})" if known else ""
