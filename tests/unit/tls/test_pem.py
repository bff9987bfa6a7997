"""Blocks of PEM, also as they look in an option."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives import serialization
from tests.certificates import Authority

from barnabas.tls.pem import armour, blocks


def test_blocks_are_found_between_other_words() -> None:
    issued = Authority().issue("a")
    found = blocks(f"Bag Attributes\n{issued.key_pem}subject=CN\n{issued.chain_pem} the end")
    assert [block.label for block in found] == ["PRIVATE KEY", "CERTIFICATE"]
    assert [block.is_key for block in found] == [True, False]
    assert found[1].is_certificate
    assert found[1].der() == issued.chain[0]


def test_line_breaks_may_be_spaces() -> None:
    """As in a properties file, where the value is one line."""
    issued = Authority().issue("a")
    (block,) = blocks(issued.chain_pem.replace("\n", " "))
    assert block.der() == issued.chain[0]
    assert block.text() == armour("CERTIFICATE", issued.chain[0])


def test_a_block_is_written_in_lines_as_openssl_reads_them() -> None:
    text = armour("CERTIFICATE", bytes(100))
    assert max(len(line) for line in text.splitlines()) <= 76
    assert text.startswith("-----BEGIN CERTIFICATE-----\n")
    assert text.endswith("\n-----END CERTIFICATE-----\n")


def test_encrypted_keys_are_recognized_in_both_forms() -> None:
    issued = Authority().issue("a")
    traditional = issued.key_bytes("x", form=serialization.PrivateFormat.TraditionalOpenSSL)
    for text, encrypted in (
        (issued.key_pem, False),
        (issued.key_bytes("x").decode(), True),
        (traditional.decode(), True),
    ):
        (block,) = blocks(text)
        assert block.is_encrypted is encrypted
        assert block.text().splitlines() == text.splitlines() or not block.body.count(":")


def test_what_is_not_base64_is_refused() -> None:
    (block,) = blocks("-----BEGIN CERTIFICATE-----\n???\n-----END CERTIFICATE-----")
    with pytest.raises(ValueError, match="CERTIFICATE block is not base64"):
        block.der()
