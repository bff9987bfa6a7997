"""Keys that sign tokens: which are used, and when they are fetched again."""

from __future__ import annotations

import json

import pytest
from tests.unit.security.sasl.bearer import issuer, jwks

from barnabas.model.errors import ConfigError
from barnabas.security.sasl.jwks import KEY_ID_CHARACTERS_MAX, SigningKeys


class Keys(SigningKeys):
    """Keys that count how often they should be fetched."""

    def __init__(self) -> None:
        super().__init__("the keys", self._count)
        self.wishes = 0

    def _count(self) -> None:
        self.wishes += 1


@pytest.fixture
def keys() -> Keys:
    loaded = Keys()
    loaded.load(jwks(issuer(), issuer("two", "RS256"), issuer(None, "EdDSA")))
    return loaded


def test_a_key_is_found_by_its_name_if_the_algorithm_fits(keys: Keys) -> None:
    found = keys.find("two", "PS512", 0)
    assert found is not None
    assert found.key_id == "two"
    assert keys.find("two", "ES256", 0) is None
    assert keys.find("one", "ES384", 0) is None, "the curve decides"
    assert keys.wishes == 0, "the key is known, only not for this"


def test_without_a_name_the_only_key_that_fits_is_used(keys: Keys) -> None:
    assert keys.find(None, "EdDSA", 0) is not None
    assert keys.find(None, "ES256", 0) is not None
    keys.load(jwks(issuer(), issuer("other", "ES256")))
    assert keys.find(None, "ES256", 0) is None


def test_an_unknown_key_is_fetched_once_a_minute(keys: Keys) -> None:
    for now_ms in range(0, 60_000, 500):
        assert keys.find("new", "ES256", now_ms) is None
    assert keys.wishes == 1
    keys.find("new", "ES256", 60_000)
    assert keys.wishes == 2


def test_only_a_few_unknown_keys_are_remembered(keys: Keys) -> None:
    for number in range(1000):
        keys.find(f"new-{number}", "ES256", 0)
    assert len(keys._unknown) == 16


def test_huge_names_are_ignored(keys: Keys) -> None:
    keys.find("x" * (KEY_ID_CHARACTERS_MAX + 1), "ES256", 0)
    assert keys.wishes == 0


def test_keys_that_are_not_for_signatures_are_skipped() -> None:
    keys = Keys()
    entries = [
        {"kty": "oct", "kid": "secret", "k": "AAAA"},
        {**issuer().jwk, "kid": "encrypts", "use": "enc"},
        {**issuer("two", "RS256").jwk, "kid": "other", "alg": "RSA-OAEP"},
        {"kty": "EC", "crv": "secp256k1", "kid": "curve", "x": "AA", "y": "AA"},
        {"kty": "EC", "crv": "P-256", "kid": "broken", "x": "AA", "y": "AA"},
        {**issuer("two", "RS256").jwk, "kid": "only-256", "alg": "RS256"},
    ]
    keys.load(json.dumps({"keys": entries}).encode())
    assert len(keys) == 1
    assert keys.find("only-256", "RS256", 0) is not None
    assert keys.find("only-256", "RS512", 0) is None


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b'{"keys": {}}', b'{"keys": []}', b'{"keys": [1]}', b"\xff"]
)
def test_what_has_no_keys_changes_nothing(keys: Keys, text: bytes) -> None:
    with pytest.raises(ConfigError, match="the keys: "):
        keys.load(text)
    assert len(keys) == 3
