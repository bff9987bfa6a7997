"""Bearer tokens: whose signature counts, and what their claims must say, on virtual time."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from tests.unit.security.sasl.bearer import CLAIMS, NOW_S, issuer, jwks, unsecured

from barnabas.model.errors import ConfigError
from barnabas.security.sasl.exchange import Login
from barnabas.security.sasl.jwks import SigningKeys
from barnabas.security.sasl.jwt_validator import (
    TOKEN_CHARACTERS_MAX,
    ClaimRules,
    SignedTokens,
    UnsecuredTokens,
)
from barnabas.security.sasl.oauthbearer import InvalidToken

NOW_MS = NOW_S * 1000
ALGORITHMS = ["RS256", "PS384", "RS512", "ES256", "ES384", "ES512", "EdDSA"]


def signed(*issuers: Any, **rules: Any) -> SignedTokens:
    keys = SigningKeys("the keys")
    keys.load(jwks(*issuers or [issuer()]))
    return SignedTokens(keys, ClaimRules(**rules))


def reason(validate: Any, token: str) -> str:
    with pytest.raises(InvalidToken) as failure:
        validate(token, NOW_MS)
    assert token not in str(failure.value)
    return str(failure.value)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("key_id", ["one", None])
def test_signed_tokens_let_in(algorithm: str, key_id: str | None) -> None:
    who = issuer(key_id, algorithm)
    login = signed(who)(who.sign(CLAIMS), NOW_MS)
    assert login == Login("alice", CLAIMS["exp"] * 1000)


def test_the_signature_must_be_of_that_key() -> None:
    stranger = issuer("stranger")
    assert "no key of the keys fits" in reason(signed(), stranger.sign(CLAIMS))
    assert reason(signed(), stranger.sign(CLAIMS, kid="one")) == "its signature is wrong"


def test_changed_claims_are_noticed() -> None:
    header, _, signature = issuer().sign(CLAIMS).split(".")
    _, claims, _ = issuer().sign({**CLAIMS, "sub": "root"}).split(".")
    assert reason(signed(), f"{header}.{claims}.{signature}") == "its signature is wrong"


def test_tokens_that_nobody_signed_are_refused() -> None:
    for header in ({"alg": "none"}, {"alg": "None"}, {"alg": "none", "kid": "one"}, {}):
        assert "algorithm" in reason(signed(), unsecured(CLAIMS, header))


def test_a_public_key_is_no_secret_of_hs256() -> None:
    who = issuer("two", "RS256")
    public = who.private.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    # By hand, since PyJWT refuses to make it.
    unsigned = unsecured(CLAIMS, {"alg": "HS256", "kid": "two"})[:-1]
    mac = urlsafe_b64encode(hmac.digest(public, unsigned.encode(), "sha256")).rstrip(b"=")
    forged = f"{unsigned}.{mac.decode()}"
    assert "algorithm" in reason(signed(who), forged)


def test_critical_headers_are_not_ignored() -> None:
    token = issuer().sign(CLAIMS, crit=["exp"])
    assert reason(signed(), token) == "its header cannot be read"


@pytest.mark.parametrize(
    "token", ["", "a", "a.b", "a.b.c", "....", "é.b.c", "!.!.!", "e30.e30.", "W10.W10.W10", "." * 9]
)
def test_what_is_no_token(token: str) -> None:
    with pytest.raises(InvalidToken):
        signed()(token, NOW_MS)


def test_huge_tokens_are_not_parsed() -> None:
    token = issuer().sign({**CLAIMS, "padding": "x" * TOKEN_CHARACTERS_MAX})
    assert "characters" in reason(signed(), token)


def test_deeply_nested_tokens_are_refused() -> None:
    part = urlsafe_b64encode(b"[" * 6000).decode()
    assert reason(signed(), f"{part}.e30.x") == "it is not a JWT"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"exp": None}, "exp"),
        ({"iat": None}, "iat"),
        ({"exp": "soon"}, "exp"),
        ({"exp": True}, "exp"),
        ({"exp": 1e300}, "exp"),
        ({"exp": NOW_S - 30}, "it has expired"),
        ({"nbf": NOW_S + 31}, "it is not valid yet"),
        ({"sub": None}, "principal"),
        ({"sub": 7}, "principal"),
        ({"sub": "  "}, "principal"),
        ({"aud": "kafka"}, "audience"),
        ({"aud": ["kafka"]}, "audience"),
        ({"scope": 5}, "scope"),
        ({"scope": ["a", "a"]}, "scope"),
        ({"scope": [" "]}, "scope"),
        ({"scope": ["a", 5]}, "scope"),
    ],
)
def test_claims_that_are_refused(change: dict[str, Any], why: str) -> None:
    claims = {name: value for name, value in {**CLAIMS, **change}.items() if value is not None}
    assert why in reason(signed(), issuer().sign(claims))


@pytest.mark.parametrize(
    ("change", "ends_s"),
    [
        ({"exp": NOW_S - 29}, NOW_S + 1),  # the session lasts as long as the skew
        ({"exp": NOW_S}, NOW_S + 30),
        ({"exp": NOW_S + 1}, NOW_S + 1),
        ({"exp": NOW_S + 1.5}, NOW_S + 1.5),
        ({"nbf": NOW_S + 30}, NOW_S + 3600),
        ({"iat": NOW_S + 9999}, NOW_S + 3600),
        ({"iss": "anybody"}, NOW_S + 3600),
        ({"scope": "a b"}, NOW_S + 3600),
        ({"scope": ["a", "b"]}, NOW_S + 3600),
    ],
)
def test_claims_that_are_accepted(change: dict[str, Any], ends_s: float) -> None:
    login = signed()(issuer().sign({**CLAIMS, **change}), NOW_MS)
    assert login == Login("alice", int(ends_s * 1000))


def test_the_audience_must_be_one_of_the_expected() -> None:
    validate = signed(audiences=("kafka", "others"))
    for audience in ("kafka", ["x", "others"]):
        assert validate(issuer().sign({**CLAIMS, "aud": audience}), NOW_MS).name == "alice"
    for change in ({"aud": "x"}, {"aud": []}, {}):
        assert "audience" in reason(validate, issuer().sign({**CLAIMS, **change}))


def test_the_issuer_must_be_the_expected() -> None:
    validate = signed(issuer="https://issuer.example")
    token = issuer().sign({**CLAIMS, "iss": "https://issuer.example"})
    assert validate(token, NOW_MS).name == "alice"
    for change in ({"iss": "https://issuer.example/"}, {}):
        assert "issuer" in reason(validate, issuer().sign({**CLAIMS, **change}))


def test_claims_can_have_other_names() -> None:
    validate = signed(name_claim="email", scope_claim="scp")
    token = issuer().sign({**CLAIMS, "email": " a@b.c ", "sub": 7, "scope": 7, "scp": "x"})
    assert validate(token, NOW_MS).name == "a@b.c"


# Unsecured tokens, for tests.


def test_an_unsecured_token_lets_in() -> None:
    login = UnsecuredTokens({})(unsecured(CLAIMS), NOW_MS)
    assert login == Login("alice", CLAIMS["exp"] * 1000)
    del_iat = {name: value for name, value in CLAIMS.items() if name != "iat"}
    assert UnsecuredTokens({})(unsecured(del_iat), NOW_MS) == login


@pytest.mark.parametrize(
    "change",
    [
        {"sub": ""},
        {"exp": NOW_S},
        {"exp": "x"},
        {"iat": NOW_S + 1},
        {"iat": NOW_S + 3600},
    ],
)
def test_unsecured_tokens_have_rules_too(change: dict[str, Any]) -> None:
    reason(UnsecuredTokens({}), unsecured({**CLAIMS, **change}))


def test_a_signed_token_is_not_unsecured() -> None:
    reason(UnsecuredTokens({}), issuer().sign(CLAIMS))
    reason(UnsecuredTokens({}), unsecured(CLAIMS) + "AAAA")


def test_options_of_the_jaas_entry() -> None:
    options = {
        "unsecuredValidatorPrincipalClaimName": "who",
        "unsecuredValidatorScopeClaimName": "scp",
        "unsecuredValidatorRequiredScope": "read write",
        "unsecuredValidatorAllowableClockSkewMs": "2000",
    }
    claims = {"who": "bob", "exp": NOW_S - 1, "scp": "write read x"}
    assert UnsecuredTokens(options)(unsecured(claims), NOW_MS) == Login("bob", NOW_MS + 1000)
    for scope in ("read", ["read"]):
        with pytest.raises(InvalidToken) as failure:
            UnsecuredTokens(options)(unsecured({**claims, "scp": scope}), NOW_MS)
        assert failure.value.scope == "read write"
    with pytest.raises(ConfigError, match="unsecuredValidatorAllowableClockSkewMs=-1"):
        UnsecuredTokens({"unsecuredValidatorAllowableClockSkewMs": "-1"})
