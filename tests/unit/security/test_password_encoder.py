"""Encrypted secrets: Kafka's form, wrong and older secrets."""

from __future__ import annotations

import os

import pytest

from barnabas.model.errors import ConfigError
from barnabas.security.password_encoder import Encoding, PasswordEncoder


def encoder(
    secret: str = "secret", old: str | None = None, encoding: Encoding | None = None
) -> PasswordEncoder:
    return PasswordEncoder(secret, old, encoding or Encoding(1024, 128), os.urandom)


@pytest.mark.parametrize("text", ["x", "sixteen bytes ok", "", "a,b:=☂ \N{ROCKET}", "y" * 5000])
@pytest.mark.parametrize("key_bits", [128, 192, 256])
def test_what_was_encoded_is_decoded(text: str, key_bits: int) -> None:
    stored = encoder(encoding=Encoding(1024, key_bits)).encode(text)
    assert encoder().decode(stored) == text
    assert len(text) < 10 or text not in stored


def test_it_has_the_form_of_kafka() -> None:
    pairs = dict(pair.split(":", 1) for pair in encoder().encode("hush").split(","))
    assert pairs.keys() == {
        "keyFactoryAlgorithm",
        "cipherAlgorithm",
        "keyLength",
        "salt",
        "iterations",
        "encryptedPassword",
        "passwordLength",
        "initializationVector",
    }
    assert pairs["passwordLength"] == "4"


def test_the_same_secret_is_encrypted_differently_each_time() -> None:
    assert encoder().encode("hush") != encoder().encode("hush")


def test_an_older_secret_still_decrypts() -> None:
    stored = encoder("old").encode("hush")
    assert encoder("new", "old").decode(stored) == "hush"


def test_another_secret_does_not_decrypt() -> None:
    failures = 0
    for _ in range(20):  # the padding of a wrong key is right by chance now and then
        with pytest.raises(ConfigError, match="not the one that encrypted"):
            encoder("other").decode(encoder().encode("hush"))
        failures += 1
    assert failures == 20


@pytest.mark.parametrize("stored", ["hush", "a:b", "salt:!,iterations:x", ""])
def test_other_texts_are_rejected_without_showing_them(stored: str) -> None:
    with pytest.raises(ConfigError, match="not in the form") as raised:
        encoder().decode(stored)
    assert "hush" not in str(raised.value)


def test_a_key_length_must_be_one_of_the_ciphers() -> None:
    with pytest.raises(ConfigError, match=r"password\.encoder\.key\.length=100"):
        encoder(encoding=Encoding(1024, 100))
