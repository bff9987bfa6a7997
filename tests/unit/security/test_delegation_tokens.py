"""Delegation tokens: lifetimes, who may do what, and logins, on virtual time."""

from __future__ import annotations

from base64 import b64decode

import pytest

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.delegation_tokens import DelegationToken, DelegationTokens, Lifetimes
from barnabas.security.principal import Principal
from barnabas.security.sasl.scram_credentials import SHA_256, SHA_512, ScramCredential

ALICE, BOB, CAROL = (Principal("User", name) for name in ("alice", "bob", "carol"))
NOW_MS = 1_000_000
TIMES = Lifetimes(longest_ms=7000, expiry_ms=1000)


@pytest.fixture
def tokens() -> DelegationTokens:
    return DelegationTokens("abc", lambda size: bytes(range(size)))


@pytest.fixture
def token(tokens: DelegationTokens) -> DelegationToken:
    made = tokens.create(ALICE, ALICE, [BOB], 0, TIMES, NOW_MS)
    tokens.set(made)
    return made


def code_of(failure: pytest.ExceptionInfo[RequestError]) -> ErrorCode:
    return failure.value.code


def test_the_hmac_is_kafkas(tokens: DelegationTokens) -> None:
    assert tokens.hmac_of("kwI95w1lSm2D_6oJ1isA6A") == b64decode(
        "bAVZyni/ZwvBYFQmaZcE7mrijJeGzmKv0LbjE8R9ebmGVUcbsDh/M80QqOJ7OuuneffoRRyIc1c/dXzDpRuYUQ=="
    )


def test_without_a_secret_there_are_no_tokens(token: DelegationToken) -> None:
    for secret in (None, ""):
        none = DelegationTokens(secret, bytes)
        none.set(token)
        assert not none.enabled
        assert none.all() == []
        assert none.find_login(SHA_256, token.token_id) is None


def test_an_id_is_base64_without_padding(token: DelegationToken) -> None:
    assert token.token_id == "AAECAwQFBgcICQoLDA0ODw"


def test_no_id_looks_like_an_option() -> None:
    """Commands take ids as arguments."""
    drawn = iter([b"\xf8" + bytes(15), b"\xfb" + bytes(15), b"\xf7" + bytes(15)])
    tokens = DelegationTokens("abc", lambda size: next(drawn))
    token = tokens.create(ALICE, ALICE, [], 0, TIMES, NOW_MS)
    assert token.token_id == "9w" + 20 * "A"


@pytest.mark.parametrize(
    ("asked_ms", "longest_ms", "expiry_ms"),
    [(0, 7000, 1000), (-1, 7000, 1000), (9000, 7000, 1000), (3000, 3000, 1000), (500, 500, 500)],
)
def test_lifetimes_of_a_new_token(
    tokens: DelegationTokens, asked_ms: int, longest_ms: int, expiry_ms: int
) -> None:
    made = tokens.create(ALICE, BOB, [], asked_ms, TIMES, NOW_MS)
    assert made.issued_ms == NOW_MS
    assert made.ends_ms == NOW_MS + longest_ms
    assert made.expires_ms == NOW_MS + expiry_ms
    assert tokens.get(made.token_id) is None, "it is known once it is stored"


@pytest.mark.parametrize(
    ("period_ms", "at_ms", "expires_ms"),
    [(-1, 500, 1500), (0, 500, 500), (2000, 500, 2500), (99_000, 500, 7000), (-1, 1000, 2000)],
)
def test_renewing(
    tokens: DelegationTokens, token: DelegationToken, period_ms: int, at_ms: int, expires_ms: int
) -> None:
    mac = tokens.hmac_of(token.token_id)
    for principal in (ALICE, BOB):
        renewed = tokens.renewed(mac, principal, period_ms, TIMES, NOW_MS + at_ms)
        assert renewed == token._replace(expires_ms=NOW_MS + expires_ms)


def test_what_cannot_be_renewed(tokens: DelegationTokens, token: DelegationToken) -> None:
    mac = tokens.hmac_of(token.token_id)
    with pytest.raises(RequestError) as failure:
        tokens.renewed(mac[:-1], ALICE, -1, TIMES, NOW_MS)
    assert code_of(failure) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    with pytest.raises(RequestError) as failure:
        tokens.renewed(mac, CAROL, -1, TIMES, NOW_MS)
    assert code_of(failure) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    with pytest.raises(RequestError) as failure:
        tokens.renewed(mac, ALICE, -1, TIMES, NOW_MS + 1001)
    assert code_of(failure) == ErrorCode.DELEGATION_TOKEN_EXPIRED


def test_expiring(tokens: DelegationTokens, token: DelegationToken) -> None:
    mac = tokens.hmac_of(token.token_id)
    assert tokens.expiring(mac, BOB, 300, NOW_MS) == (
        token._replace(expires_ms=NOW_MS + 300),
        False,
    )
    assert tokens.expiring(mac, ALICE, 99_000, NOW_MS)[0].expires_ms == token.ends_ms
    ended, at_once = tokens.expiring(mac, ALICE, -1, NOW_MS + 5)
    assert (ended.expires_ms, at_once) == (NOW_MS + 5, True)
    assert tokens.expiring(mac, ALICE, -1, NOW_MS + 99_000)[1], "also of one that has expired"
    with pytest.raises(RequestError) as failure:
        tokens.expiring(mac, ALICE, 5, NOW_MS + 1001)
    assert code_of(failure) == ErrorCode.DELEGATION_TOKEN_EXPIRED
    with pytest.raises(RequestError) as failure:
        tokens.expiring(mac, CAROL, -1, NOW_MS)
    assert code_of(failure) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


def test_expired_tokens_are_those_past_either_end(
    tokens: DelegationTokens, token: DelegationToken
) -> None:
    assert tokens.expired(token.expires_ms) == []
    assert tokens.expired(token.expires_ms + 1) == [token]
    tokens.set(token._replace(expires_ms=token.ends_ms + 99))
    assert tokens.expired(token.ends_ms) == []
    assert len(tokens.expired(token.ends_ms + 1)) == 1


def test_tokens_are_shown_by_owner_or_renewer(
    tokens: DelegationTokens, token: DelegationToken
) -> None:
    assert tokens.visible(None, lambda _: True) == [token]
    assert tokens.visible([], lambda _: True) == []
    assert tokens.visible([ALICE], lambda _: True) == [token]
    assert tokens.visible([CAROL, BOB], lambda _: True) == [token]
    assert tokens.visible([CAROL], lambda _: True) == []
    assert tokens.visible(None, lambda _: False) == []


def test_who_requested_a_token_for_another_sees_and_changes_it(
    tokens: DelegationTokens, token: DelegationToken
) -> None:
    """Only owners and renewers could; Kafka counts the requester among them."""
    tokens.set(token._replace(requester=CAROL))
    assert len(tokens.visible([CAROL], lambda _: True)) == 1
    mac = tokens.hmac_of(token.token_id)
    assert tokens.expiring(mac, CAROL, 300, NOW_MS)[0].expires_ms == NOW_MS + 300


def test_a_login_finds_the_token_and_makes_its_credential_once(
    tokens: DelegationTokens, token: DelegationToken
) -> None:
    found = tokens.find_login(SHA_512, token.token_id)
    assert found == ("alice", token.expires_ms, None)
    made = tokens.make_credential(SHA_512, token.token_id)
    assert isinstance(made, ScramCredential)
    assert tokens.make_credential(SHA_512, token.token_id) is made
    again = tokens.find_login(SHA_512, token.token_id)
    assert again is not None
    assert again.credential is made
    other = tokens.find_login(SHA_256, token.token_id)
    assert other is not None
    assert other.credential is None
    tokens.remove(token.token_id)
    assert tokens.find_login(SHA_512, token.token_id) is None
    assert tokens.make_credential(SHA_512, token.token_id) is None
    assert tokens._credentials == {}
    assert tokens._ids == {}
