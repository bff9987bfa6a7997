"""DIGEST-MD5: the RFC's own example, odd names, and servers that are not what they say."""

from __future__ import annotations

import hashlib

import pytest

from barnabas.coordination.zookeeper.digest_md5 import DigestMd5, DigestMd5Error

EXAMPLE = (
    b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",'
    b"algorithm=md5-sess,charset=utf-8"
)


def example() -> DigestMd5:
    return DigestMd5("chris", "secret", "OA6MHXh6VqTrRk", "imap/elwood.innosoft.com")


def test_the_example_of_the_rfc() -> None:
    login = example()
    answer = login.answer(EXAMPLE).decode()
    assert "response=d388dad90d4bbd760a152321f2143af7" in answer.split(",")
    assert 'username="chris"' in answer
    assert "secret" not in answer
    login.check(b"rspauth=ea40f60335c427b5527b84dbabcdfffd")


@pytest.mark.parametrize(
    "proof", [b"", b"rspauth=ea40f60335c427b5527b84dbabcdfffe", b"ea40f60335c427b5527b84dbabcdfffd"]
)
def test_a_server_that_does_not_know_the_password(proof: bytes) -> None:
    login = example()
    login.answer(EXAMPLE)
    with pytest.raises(DigestMd5Error, match="did not prove"):
        login.check(proof)


def test_no_proof_is_good_before_the_challenge() -> None:
    with pytest.raises(DigestMd5Error):
        example().check(b"rspauth=")


@pytest.mark.parametrize(
    ("challenge", "said"),
    [
        (b"", "not one of DIGEST-MD5"),
        (b"\xff\xfe", "not one of DIGEST-MD5"),
        (b'nonce="x",algorithm=md5', "not one of DIGEST-MD5"),
        (b'nonce="",algorithm=md5-sess', "not one of DIGEST-MD5"),
        (b'nonce="x",algorithm=md5-sess,qop="auth-int,auth-conf"', "demands qop=auth-int"),
    ],
)
def test_what_is_no_challenge(challenge: bytes, said: str) -> None:
    with pytest.raises(DigestMd5Error, match=said):
        example().answer(challenge)


def test_quotes_in_names_and_more_than_one_realm() -> None:
    login = DigestMd5('a"b\\c', "p", "n")
    answer = login.answer(rb'realm="r\"1",realm="r2", nonce="x" ,algorithm=md5-sess').decode()
    assert r'username="a\"b\\c"' in answer
    assert r'realm="r\"1"' in answer
    assert 'digest-uri="zookeeper/zk-sasl-md5"' in answer
    assert "charset" not in answer


@pytest.mark.parametrize(("password", "encoded"), [("zürich", "latin-1"), ("東京", "utf-8")])
def test_passwords_beyond_ascii(password: str, encoded: str) -> None:
    """In the secret, what fits into ISO 8859-1 is encoded so, whatever the charset."""
    login = DigestMd5("u", password, "n")
    answer = login.answer(b'realm="r",nonce="x",algorithm=md5-sess,charset=utf-8').decode()
    secret = hashlib.md5(b"u:r:" + password.encode(encoded)).digest()
    session = hashlib.md5(secret + b":x:n").hexdigest()
    what = hashlib.md5(b"AUTHENTICATE:zookeeper/zk-sasl-md5").hexdigest()
    expected = hashlib.md5(f"{session}:x:00000001:n:auth:{what}".encode()).hexdigest()
    assert f"response={expected}" in answer


def test_a_user_that_the_server_cannot_be_told() -> None:
    with pytest.raises(DigestMd5Error, match="ISO 8859-1"):
        DigestMd5("東京", "p", "n").answer(b'nonce="x",algorithm=md5-sess')
