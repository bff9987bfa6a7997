"""The arithmetic of SCRAM against the example of RFC 7677."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode

import pytest

from barnabas.client.sasl.scram_keys import salted_password, scram_keys, xor

EXCHANGED = (
    b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
)


def test_the_example_of_the_standard() -> None:
    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    keys = scram_keys("sha256", salted_password("sha256", "pencil", salt, 4096))
    signature = hmac.digest(keys.stored_key, EXCHANGED, "sha256")
    proof = b64encode(xor(keys.client_key, signature))
    assert proof == b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    verifier = hmac.digest(keys.server_key, EXCHANGED, "sha256")
    assert b64encode(verifier) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert "hidden" in repr(keys)


def test_a_proof_and_its_signature_give_the_key() -> None:
    assert xor(xor(b"key", b"abc"), b"abc") == b"key"
    with pytest.raises(ValueError, match="shorter"):
        xor(b"key", b"ab")
