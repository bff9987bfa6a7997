"""Bearer tokens as clients see them: issued ones are read, unsigned ones are made."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest

from barnabas.client.errors import AuthenticationFailedError
from barnabas.client.sasl.bearer_token import UnsecuredTokens, extensions_of, read_token
from barnabas.model.errors import ConfigError
from barnabas.security.sasl.exchange import Login
from barnabas.security.sasl.jwt_validator import UnsecuredTokens as Validator

NOW_MS = 1_700_000_000_000


def jwt(claims: object, signature: str = "c2ln") -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"eyJhbGciOiJSUzI1NiJ9.{body}.{signature}"


def claims_of(token: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))


def test_the_lifetime_of_a_token_is_read() -> None:
    text = jwt({"sub": "alice", "iat": 100, "exp": 160.5})
    token = read_token(f" {text}\n", "sub")
    assert token == (text, 100_000, 160_500)
    assert read_token(jwt({"who": "alice", "exp": 160}), "who").starts_ms is None
    assert text not in repr(token)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("opaque", "not a JWT"),
        ("a.b.c", "not a JWT"),
        ("", "not a JWT"),
        (jwt([1]), "not a JWT"),
        (jwt({"sub": "alice"}), "no claim exp"),
        (jwt({"sub": "alice", "exp": "soon"}), "no claim exp"),
        (jwt({"sub": "alice", "exp": True}), "no claim exp"),
        (jwt({"sub": "alice", "exp": float("inf")}), "no claim exp"),
        (jwt({"exp": 160}), "no claim sub"),
        (jwt({"exp": 160, "sub": " "}), "no claim sub"),
    ],
)
def test_what_is_no_token_is_refused_and_not_shown(text: str, why: str) -> None:
    with pytest.raises(AuthenticationFailedError, match=why) as failure:
        read_token(text, "sub")
    assert not text or text not in str(failure.value)


def test_an_unsigned_token_has_the_claims_of_the_entry() -> None:
    jaas = {
        "unsecuredLoginStringClaim_sub": "alice",
        "unsecuredLoginNumberClaim_level": "7",
        "unsecuredLoginNumberClaim_part": "0.5",
        "unsecuredLoginListClaim_scope": "|read|write",
        "unsecuredLoginListClaim_none": "|",
        "unsecuredLoginLifetimeSeconds": "60",
        "unsecuredLoginExtension_cluster": "lc",
    }
    token = UnsecuredTokens(jaas, "sasl.jaas.config").issue(NOW_MS)
    assert claims_of(token.value) == {
        "sub": "alice",
        "level": 7,
        "part": 0.5,
        "scope": ["read", "write"],
        "none": [],
        "iat": NOW_MS // 1000,
        "exp": NOW_MS // 1000 + 60,
    }
    assert token[1:] == (NOW_MS, NOW_MS + 60_000)
    assert Validator({})(token.value, NOW_MS) == Login("alice", NOW_MS + 60_000)


@pytest.mark.parametrize(
    ("jaas", "why"),
    [
        ({}, "needs unsecuredLoginStringClaim_sub, who logs in"),
        ({"unsecuredLoginNumberClaim_sub": "1"}, "needs unsecuredLoginStringClaim_sub"),
        (
            {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginPrincipalClaimName": "who"},
            "needs unsecuredLoginStringClaim_who",
        ),
        ({"unsecuredLoginNumberClaim_n": "many"}, "unsecuredLoginNumberClaim_n=many: must be a"),
        (
            {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginLifetimeSeconds": "0"},
            "unsecuredLoginLifetimeSeconds=0: must be more than 0",
        ),
    ],
)
def test_claims_that_cannot_be_sent_are_refused(jaas: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=f"^some.jaas: {re.escape(why)}"):
        UnsecuredTokens(jaas, "some.jaas")


def test_extensions_are_those_of_a_prefix() -> None:
    jaas = {"extension_poolId": "p1", "extension_b": "x y", "unsecuredLoginExtension_c": "z"}
    assert extensions_of(jaas, "extension_", "o") == {"poolId": "p1", "b": "x y"}
    for wrong in ({"extension_auth": "x"}, {"extension_a1": "x"}, {"extension_": "x"}):
        with pytest.raises(ConfigError, match="must be extension_ and letters, and not auth"):
            extensions_of(wrong, "extension_", "o")
    with pytest.raises(ConfigError, match="must be printable ASCII"):
        extensions_of({"extension_a": "x\x01"}, "extension_", "o")
