"""Bearer tokens as JWTs: those that are signed, and unsecured ones for tests.

The signature is checked by PyJWT, the claims here, at a time that is passed in.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.model.errors import ConfigError
from barnabas.security.sasl.exchange import Login
from barnabas.security.sasl.jwks import ALGORITHMS, SigningKeys
from barnabas.security.sasl.oauthbearer import InvalidToken

TOKEN_CHARACTERS_MAX = 16 * 1024


def check_extra(option: str) -> None:
    """Raise ConfigError if the libraries that check signed tokens are not installed."""
    try:
        import cryptography
        import jwt  # noqa: F401
    except ImportError:
        raise ConfigError(
            f"{option}: signed tokens need PyJWT and cryptography; install barnabas[security]"
        ) from None
    del cryptography


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRules:
    """What the claims of a signed token must say: the `sasl.oauthbearer.*` options."""

    audiences: tuple[str, ...] = ()
    issuer: str | None = None
    scope_claim: str = "scope"
    name_claim: str = "sub"
    skew_ms: int = 30_000


class SignedTokens:
    """Validates signed tokens."""

    def __init__(self, keys: SigningKeys, rules: ClaimRules) -> None:
        self._keys = keys
        self._rules = rules

    def __call__(self, token: str, now_ms: int) -> Login:
        """Return the login that a token gives at a time; raise InvalidToken."""
        header, _, _ = _parts(token)
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in ALGORITHMS:
            raise InvalidToken("its algorithm is not one of a public key")
        if not (key_id is None or isinstance(key_id, str)) or "crit" in header:
            raise InvalidToken("its header cannot be read")
        key = self._keys.find(key_id, algorithm, now_ms)
        if key is None:
            raise InvalidToken(f"no key of {self._keys.where} fits it")
        claims = self._claims(token, key.key, algorithm)
        return self._login(claims, now_ms)

    @staticmethod
    def _claims(token: str, key: Any, algorithm: str) -> dict[str, Any]:
        from jwt import PyJWS
        from jwt.exceptions import PyJWTError

        try:
            payload = PyJWS().decode(token, key, algorithms=[algorithm])
        except (PyJWTError, ValueError, TypeError):
            raise InvalidToken("its signature is wrong") from None
        return _object(payload)

    def _login(self, claims: Mapping[str, Any], now_ms: int) -> Login:
        rules = self._rules
        ends_ms = _time(claims, "exp")
        _time(claims, "iat")  # required; one in the future is fine
        ends_ms = _until(ends_ms, now_ms, rules.skew_ms)
        if "nbf" in claims and _time(claims, "nbf") > now_ms + rules.skew_ms:
            raise InvalidToken("it is not valid yet")
        if rules.issuer is not None and claims.get("iss") != rules.issuer:
            raise InvalidToken("it has another issuer")
        _check_audience(claims, rules.audiences)
        _check_scope(claims.get(rules.scope_claim))
        return Login(_name(claims, rules.name_claim), ends_ms)


class UnsecuredTokens:
    """Validates tokens that nobody has signed: for tests, and only if asked for by name."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Take the options of the JAAS entry that begin with `unsecuredValidator`."""
        self._name_claim = options.get("unsecuredValidatorPrincipalClaimName", "sub")
        self._scope_claim = options.get("unsecuredValidatorScopeClaimName", "scope")
        self._scopes = options.get("unsecuredValidatorRequiredScope", "").split()
        skew = options.get("unsecuredValidatorAllowableClockSkewMs", "0")
        if not skew.isdecimal():
            raise ConfigError(f"unsecuredValidatorAllowableClockSkewMs={skew}: must be at least 0")
        self._skew_ms = int(skew)

    def __call__(self, token: str, now_ms: int) -> Login:
        """Return the login that a token gives at a time; raise InvalidToken."""
        header, claims, signature = _parts(token)
        if header.get("alg") != "none" or signature:
            raise InvalidToken("it is signed, but unsecured tokens are expected")
        name = _name(claims, self._name_claim)
        ends_ms = _time(claims, "exp")
        if "iat" in claims:
            issued_ms = _time(claims, "iat")
            if issued_ms >= ends_ms or issued_ms > now_ms + self._skew_ms:
                raise InvalidToken("its claims iat and exp do not fit")
        ends_ms = _until(ends_ms, now_ms, self._skew_ms)
        held = claims.get(self._scope_claim, [])
        held = held.split() if isinstance(held, str) else held
        if any(scope not in held for scope in self._scopes):
            raise InvalidToken("it lacks a required scope", " ".join(self._scopes))
        return Login(name, ends_ms)


def _parts(token: str) -> tuple[dict[str, Any], dict[str, Any], str]:
    if len(token) > TOKEN_CHARACTERS_MAX:
        raise InvalidToken(f"it has more than {TOKEN_CHARACTERS_MAX} characters")
    parts = token.split(".")
    if len(parts) != 3:
        raise InvalidToken("it is not a JWT")
    try:
        header, claims = (urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in parts[:2])
    except (NotBase64, ValueError):
        raise InvalidToken("it is not a JWT") from None
    return _object(header), _object(claims), parts[2]


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidToken("it is not a JWT")
    return value


def _time(claims: Mapping[str, Any], name: str) -> int:
    """Return a claim's time in milliseconds."""
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**53:
        raise InvalidToken(f"its claim {name} is missing or not a time")
    return int(value * 1000)


def _until(ends_ms: int, now_ms: int, skew_ms: int) -> int:
    """Return the end of a session: its token's, or that of the clock skew that is tolerated."""
    if ends_ms + skew_ms <= now_ms:
        raise InvalidToken("it has expired")
    return ends_ms if ends_ms > now_ms else ends_ms + skew_ms


def _check_audience(claims: Mapping[str, Any], expected: tuple[str, ...]) -> None:
    audience = claims.get("aud")
    named = [audience] if isinstance(audience, str) else audience
    if named is None:
        if expected:
            raise InvalidToken("it has no audience")
    elif not isinstance(named, list) or not any(each in expected for each in named):
        raise InvalidToken("it is for another audience (sasl.oauthbearer.expected.audience)")


def _check_scope(scope: object) -> None:
    scopes = [scope] if isinstance(scope, str) else scope
    if scopes is None:
        return
    if not isinstance(scopes, list) or not all(isinstance(each, str) for each in scopes):
        raise InvalidToken("its scope is neither a string nor a list")
    stripped = [each.strip() for each in scopes]
    if not all(stripped) or len(set(stripped)) != len(stripped):
        raise InvalidToken("its scope has empty or duplicate entries")


def _name(claims: Mapping[str, Any], claim: str) -> str:
    name = claims.get(claim)
    if not isinstance(name, str) or not name.strip():
        raise InvalidToken("it does not name its principal")
    return name.strip()
