"""Delegation tokens: what a broker knows of them, and who may do what with one.

A token is an id and its HMAC by a secret that all brokers share. The HMAC is the token's password,
for SCRAM, and is never stored: every broker computes it from the id.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.principal import Principal
from barnabas.security.sasl.scram import TokenLogin
from barnabas.security.sasl.scram_credentials import SALT_BYTES, ScramCredential, ScramMechanism


class DelegationToken(NamedTuple):
    """One token; times are the wall clock's."""

    token_id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    expires_ms: int
    """When it expires unless it is renewed."""
    ends_ms: int
    """When it expires however often it is renewed."""

    def has_expired(self, now_ms: int) -> bool:
        """Return whether nobody can log in with it any longer."""
        return self.expires_ms < now_ms or self.ends_ms < now_ms

    def concerns(self, principal: Principal) -> bool:
        """Return whether a principal owns it, has requested it for its owner, or may renew it."""
        return principal in (self.owner, self.requester) or principal in self.renewers


class Lifetimes(NamedTuple):
    """The options `delegation.token.max.lifetime.ms` and `delegation.token.expiry.time.ms`."""

    longest_ms: int
    expiry_ms: int


class DelegationTokens:
    """All tokens of a cluster, as one broker knows them."""

    def __init__(self, secret: str | None, random_bytes: Callable[[int], bytes]) -> None:
        """Without a secret there are no tokens."""
        self._secret = secret.encode() if secret else None
        self._random_bytes = random_bytes
        self._tokens: dict[str, DelegationToken] = {}
        self._ids: dict[bytes, str] = {}
        """By the digest of the HMAC, so that looking one up tells nothing about it by its time."""
        self._credentials: dict[tuple[str, str], ScramCredential] = {}
        """By mechanism and id; made at the first login."""

    @property
    def enabled(self) -> bool:
        """Return whether there is a secret."""
        return self._secret is not None

    # known tokens

    def set(self, token: DelegationToken) -> None:
        """Add a token, or replace it by its renewed form."""
        if self.enabled:
            self._tokens[token.token_id] = token
            self._ids[_digest(self.hmac_of(token.token_id))] = token.token_id

    def remove(self, token_id: str) -> None:
        """Forget a token."""
        if self._tokens.pop(token_id, None) is not None:
            self._ids.pop(_digest(self.hmac_of(token_id)), None)
            for key in [key for key in self._credentials if key[1] == token_id]:
                del self._credentials[key]

    def get(self, token_id: str) -> DelegationToken | None:
        """Return a token by its id."""
        return self._tokens.get(token_id)

    def all(self) -> list[DelegationToken]:
        """Return all tokens."""
        return list(self._tokens.values())

    def expired(self, now_ms: int) -> list[DelegationToken]:
        """Return the tokens that should be removed."""
        return [token for token in self._tokens.values() if token.has_expired(now_ms)]

    def hmac_of(self, token_id: str) -> bytes:
        """Return a token's HMAC, which is its password."""
        assert self._secret is not None, "there are no tokens without a secret"
        return hmac.digest(self._secret, token_id.encode(), "sha512")

    def _new_id(self) -> str:
        """Return a random id; a command would take one that begins with a dash for an option."""
        while True:
            token_id = urlsafe_b64encode(self._random_bytes(16)).rstrip(b"=").decode()
            if not token_id.startswith("-"):
                return token_id

    # logins by SCRAM

    def find_login(self, mechanism: ScramMechanism, token_id: str) -> TokenLogin | None:
        """Return a token as a login sees it, expired or not."""
        token = self._tokens.get(token_id)
        if token is None:
            return None
        return TokenLogin(
            token.owner.name,
            min(token.expires_ms, token.ends_ms),
            self._credentials.get((mechanism.name, token_id)),
        )

    def make_credential(self, mechanism: ScramMechanism, token_id: str) -> ScramCredential | None:
        """Return a token's SCRAM credential; this takes milliseconds."""
        if token_id not in self._tokens:
            return None
        password = b64encode(self.hmac_of(token_id)).decode()
        made = ScramCredential.of_password(mechanism, password, self._random_bytes(SALT_BYTES))
        return self._credentials.setdefault((mechanism.name, token_id), made)

    # decisions

    def create(
        self,
        owner: Principal,
        requester: Principal,
        renewers: Iterable[Principal],
        max_lifetime_ms: int,
        lifetimes: Lifetimes,
        now_ms: int,
    ) -> DelegationToken:
        """Return a new token, which is not known until it is stored and set."""
        token_id = self._new_id()
        longest_ms = lifetimes.longest_ms
        if max_lifetime_ms > 0:
            longest_ms = min(longest_ms, max_lifetime_ms)
        ends_ms = now_ms + longest_ms
        expires_ms = min(ends_ms, now_ms + lifetimes.expiry_ms)
        return DelegationToken(
            token_id, owner, requester, tuple(renewers), now_ms, expires_ms, ends_ms
        )

    def renewed(
        self, mac: bytes, principal: Principal, period_ms: int, lifetimes: Lifetimes, now_ms: int
    ) -> DelegationToken:
        """Return a token with a later expiry; raise RequestError if that cannot be."""
        token = self._find(mac, principal)
        if token.has_expired(now_ms):
            raise RequestError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        period_ms = lifetimes.expiry_ms if period_ms < 0 else period_ms
        return token._replace(expires_ms=min(token.ends_ms, now_ms + period_ms))

    def expiring(
        self, mac: bytes, principal: Principal, period_ms: int, now_ms: int
    ) -> tuple[DelegationToken, bool]:
        """Return a token with another expiry, and whether it ends at once; raise RequestError."""
        token = self._find(mac, principal)
        if period_ms < 0:
            return token._replace(expires_ms=now_ms), True
        if token.has_expired(now_ms):
            raise RequestError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        return token._replace(expires_ms=min(token.ends_ms, now_ms + period_ms)), False

    def visible(
        self,
        owners: Collection[Principal] | None,
        may_see: Callable[[DelegationToken], bool],
    ) -> list[DelegationToken]:
        """Return the tokens that some own or may renew (None: all), if the client may see them."""
        return [
            token
            for token in self._tokens.values()
            if (owners is None or any(map(token.concerns, owners))) and may_see(token)
        ]

    def _find(self, mac: bytes, principal: Principal) -> DelegationToken:
        token_id = self._ids.get(_digest(mac))
        if token_id is None:
            raise RequestError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        token = self._tokens[token_id]
        if not token.concerns(principal):
            raise RequestError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        return token


def _digest(mac: bytes) -> bytes:
    return hashlib.sha256(mac).digest()
