"""The keys that sign bearer tokens (JWKS), and when to fetch them again.

A token that names an unknown key is rejected, and the keys are fetched in the background, since
they may have been exchanged: at most once a minute for the same name, so that a flood of invented
names fetches nothing.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.model.errors import ConfigError

UNKNOWN_KEPT = 16
UNKNOWN_AGAIN_MS = 60_000
KEY_ID_CHARACTERS_MAX = 1000

_RSA = frozenset(f"{kind}{bits}" for kind in ("RS", "PS") for bits in (256, 384, 512))
_CURVES = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
ALGORITHMS = _RSA | frozenset(_CURVES.values()) | {"EdDSA"}
"""Signatures with a public key; never HS256 and the like, for which anybody has that key."""


class SigningKey(NamedTuple):
    """One public key and the algorithms that it may be used with."""

    key_id: str | None
    algorithms: frozenset[str]
    key: Any


class SigningKeys:
    """The keys of one JWKS as last fetched; none before."""

    def __init__(self, where: str, wish: Callable[[], None] = lambda: None) -> None:
        """Call `wish` when the keys should be fetched again before their time."""
        self.where = where
        self.wish = wish
        self._keys: list[SigningKey] = []
        self._unknown: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._keys)

    def load(self, text: bytes) -> None:
        """Replace the keys by those of a JWKS; raise ConfigError, keeping them, without any."""
        try:
            listed = json.loads(text)["keys"]
            keys = [key for each in listed if (key := _signing_key(each)) is not None]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ConfigError(f"{self.where}: not a set of keys (JWKS)") from None
        if not keys:
            raise ConfigError(f"{self.where}: has no public key for signatures")
        self._keys = keys
        for key in keys:
            if key.key_id is not None:
                self._unknown.pop(key.key_id, None)

    def find(self, key_id: str | None, algorithm: str, now_ms: int) -> SigningKey | None:
        """Return the key for a signature; without a name the only one that fits."""
        fitting = [key for key in self._keys if algorithm in key.algorithms]
        if key_id is None:
            return fitting[0] if len(fitting) == 1 else None
        for key in fitting:
            if key.key_id == key_id:
                return key
        if all(key.key_id != key_id for key in self._keys):
            self._note_unknown(key_id, now_ms)
        return None

    def _note_unknown(self, key_id: str, now_ms: int) -> None:
        if len(key_id) > KEY_ID_CHARACTERS_MAX:
            return
        last_ms = self._unknown.pop(key_id, None)
        if last_ms is None or now_ms - last_ms >= UNKNOWN_AGAIN_MS:
            last_ms = now_ms
            self.wish()
        self._unknown[key_id] = last_ms
        while len(self._unknown) > UNKNOWN_KEPT:
            self._unknown.popitem(last=False)


def _signing_key(entry: dict[str, Any]) -> SigningKey | None:
    """Return a key of a JWKS; None if it is not a public key for signatures that we check."""
    from jwt import PyJWK
    from jwt.exceptions import PyJWTError

    kind = entry.get("kty")
    if kind == "RSA":
        algorithms = _RSA
    elif kind == "EC" and entry.get("crv") in _CURVES:
        algorithms = frozenset({_CURVES[entry["crv"]]})
    elif kind == "OKP" and entry.get("crv") in ("Ed25519", "Ed448"):
        algorithms = frozenset({"EdDSA"})
    else:
        return None
    if entry.get("use", "sig") != "sig":
        return None
    if "alg" in entry:
        algorithms &= {entry["alg"]}
    key_id = entry.get("kid")
    if not algorithms or not (key_id is None or isinstance(key_id, str)):
        return None
    public = {name: value for name, value in entry.items() if name != "d"}
    try:
        return SigningKey(key_id, algorithms, PyJWK(public, algorithm=min(algorithms)).key)
    except PyJWTError:
        return None
