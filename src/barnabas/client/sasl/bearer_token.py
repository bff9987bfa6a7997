"""Bearer tokens (JWT) as a client sees them: their lifetime, which nobody has proved to it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from math import isfinite
from typing import Any, NamedTuple

from barnabas.client.errors import AuthenticationFailedError
from barnabas.model.errors import ConfigError

LIFETIME_S = 3600
STRING_CLAIM = "unsecuredLoginStringClaim_"
NUMBER_CLAIM = "unsecuredLoginNumberClaim_"
LIST_CLAIM = "unsecuredLoginListClaim_"
UNSECURED = "unsecuredLogin"
"""How the JAAS options of unsigned tokens begin."""


class BearerToken(NamedTuple):
    """A token, which is secret, and when it is valid."""

    value: str
    starts_ms: int | None
    ends_ms: int

    def __repr__(self) -> str:
        return f"BearerToken([hidden], ends_ms={self.ends_ms})"


def read_token(text: str, subject_claim: str) -> BearerToken:
    """Return an issued token; raise AuthenticationFailedError, without any of it, if it is none.

    It must expire and name a user, as brokers will demand.
    """
    value = text.strip()
    parts = value.split(".")
    try:
        if len(parts) != 3:
            raise ValueError
        claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
        starts_ms, ends_ms = _time_ms(claims.get("iat")), _time_ms(claims.get("exp"))
        subject = claims.get(subject_claim)
    except (ValueError, AttributeError):
        raise AuthenticationFailedError("the issued token is not a JWT") from None
    if ends_ms is None:
        raise AuthenticationFailedError("the issued token does not expire: it has no claim exp")
    if not isinstance(subject, str) or not subject.strip():
        raise AuthenticationFailedError(
            f"the issued token names nobody: it has no claim {subject_claim} "
            "(sasl.oauthbearer.sub.claim.name)"
        )
    return BearerToken(value, starts_ms, ends_ms)


def _time_ms(seconds: object) -> int | None:
    """Return a time of a claim; None if it is not a number."""
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool):
        return None
    return int(seconds * 1000) if isfinite(seconds) else None


class UnsecuredTokens:
    """Makes tokens that nobody signs, from JAAS options; only brokers set up for it accept them."""

    def __init__(self, jaas: Mapping[str, str], option: str) -> None:
        """Raise ConfigError, which names the option, if the claims are not usable."""
        self._claims = _claims(jaas, option)
        self._lifetime_s = _lifetime_s(jaas, option)
        name = jaas.get("unsecuredLoginPrincipalClaimName", "sub")
        if not isinstance(self._claims.get(name), str) or not self._claims[name]:
            raise ConfigError(f"{option}: needs {STRING_CLAIM}{name}, who logs in")

    def issue(self, now_ms: int) -> BearerToken:
        """Return a token that is valid from now on."""
        now_s = now_ms // 1000
        ends_s = now_s + self._lifetime_s
        claims = {**self._claims, "iat": now_s, "exp": ends_s}
        header, body = (
            base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()
            for part in ({"alg": "none"}, claims)
        )
        return BearerToken(f"{header}.{body}.", now_s * 1000, int(ends_s * 1000))


def _lifetime_s(jaas: Mapping[str, str], option: str) -> float:
    text = jaas.get("unsecuredLoginLifetimeSeconds", str(LIFETIME_S))
    seconds = _number(text)
    if seconds is None or seconds <= 0:
        raise ConfigError(f"{option}: unsecuredLoginLifetimeSeconds={text}: must be more than 0")
    return seconds


def _claims(jaas: Mapping[str, str], option: str) -> dict[str, Any]:
    claims: dict[str, Any] = {}
    for name, value in jaas.items():
        if name.startswith(STRING_CLAIM):
            claims[name.removeprefix(STRING_CLAIM)] = value
        elif name.startswith(NUMBER_CLAIM):
            number = _number(value)
            if number is None:
                raise ConfigError(f"{option}: {name}={value}: must be a number")
            claims[name.removeprefix(NUMBER_CLAIM)] = number
        elif name.startswith(LIST_CLAIM):  # the first character separates the rest: |a|b
            claims[name.removeprefix(LIST_CLAIM)] = value[1:].split(value[0]) if value[1:] else []
    return claims


def _number(text: str) -> float | None:
    if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text.strip()):
        return None
    number = float(text)
    return int(number) if number.is_integer() else number


def extensions_of(jaas: Mapping[str, str], prefix: str, option: str) -> dict[str, str]:
    """Return the extensions that are sent with a token; raise ConfigError for an invalid one."""
    found: dict[str, str] = {}
    for name, value in jaas.items():
        key = name.removeprefix(prefix)
        if key == name:
            continue
        if not re.fullmatch("[A-Za-z]+", key) or key == "auth":
            raise ConfigError(f"{option}: {name}: must be {prefix} and letters, and not auth")
        if not re.fullmatch(r"[\x21-\x7e \t\r\n]+", value):
            raise ConfigError(f"{option}: {name}: its value must be printable ASCII")
        found[key] = value
    return found
