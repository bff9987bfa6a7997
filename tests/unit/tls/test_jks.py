"""JKS stores: one that keytool wrote, ones of our own, and damaged ones."""

from __future__ import annotations

import base64
import struct
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import PublicFormat, load_der_private_key
from tests.certificates import DER, Authority, sign_jks

from barnabas.tls.certificate import read_certificate
from barnabas.tls.distinguished_name import distinguished_name
from barnabas.tls.jks import JksError, read_jks

# keytool -genkeypair -alias b -keyalg EC -dname CN=jks -storetype JKS -validity 36500
#         -storepass storepass -keypass keypass1
OF_KEYTOOL = base64.b64decode(
    """
    /u3+7QAAAAIAAAABAAAAAQABYgAAAaHtiKPsAAAAfzB9MA4GCisGAQQBKgIRAQEFAARrjkOlCogMdOD9VtD6Lb5p
    Q36nVtxajQqch4N8mOUWnPZ7Le1nC/Bn+89sW9xTdL6FouKi3Hyst+MHzRtgSxMN8NddqtWvhmaMCYNiwlfIQwKL
    67UY1xF2nh3sBwSq2SnTlBcQ4TYIJH4qq00AAAABAAVYLjUwOQAAATowggE2MIHcoAMCAQICCQCQFNrYOYTNEzAK
    BggqhkjOPQQDAjAOMQwwCgYDVQQDEwNqa3MwIBcNMjYxMTE4MDcyMTU3WhgPMjEyNjEwMjUwNzIxNTdaMA4xDDAK
    BgNVBAMTA2prczBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABM/l0USRFWVlDwO3txDx+nS+83Ybw2sq65RZdcQI
    84sddwcNJCHMD6M96NcsKII+6edY1yA751sRO3X07O6DDxijITAfMB0GA1UdDgQWBBRmjzKY669QU0x+fc02Kt+P
    yYTXBTAKBggqhkjOPQQDAgNJADBGAiEAyTCIdOGY0dnz77ejXRoBICzKTNE8wyYzZAle+xtdaBwCIQDHuCWhtyMW
    y5zI69h8CxHJqHBxCvcShiKLpBHyHNDmdNCF/1ivkaX2XidjgQZU1TTPA/PQ
    """
)


def test_a_store_of_keytool_is_read() -> None:
    store = read_jks(OF_KEYTOOL, "storepass")
    assert store.certificates == []
    (key,) = store.keys
    assert key.alias == "b"
    (certificate,) = key.chain
    assert distinguished_name(read_certificate(certificate).subject) == "CN=jks"
    private = load_der_private_key(key.decrypt("keypass1"), None)
    public = private.public_key().public_bytes(DER, PublicFormat.SubjectPublicKeyInfo)
    assert public in certificate


def test_wrong_passwords_are_noticed() -> None:
    with pytest.raises(JksError, match="the password is wrong, or the file is damaged"):
        read_jks(OF_KEYTOOL, "keypass1")
    (key,) = read_jks(OF_KEYTOOL, "storepass").keys
    with pytest.raises(JksError, match="the password of the key 'b' is wrong"):
        key.decrypt("storepass")


def test_every_damaged_byte_is_noticed() -> None:
    for position in range(0, len(OF_KEYTOOL), 7):
        damaged = bytearray(OF_KEYTOOL)
        damaged[position] ^= 1
        with pytest.raises(JksError):
            read_jks(bytes(damaged), "storepass")


def test_a_store_that_is_cut_off_is_refused_without_its_password() -> None:
    """A trust store may be read without one: then lengths are all that can be checked."""
    for size in range(len(OF_KEYTOOL) - 1):
        with pytest.raises(JksError):
            read_jks(OF_KEYTOOL[:size], None)
    assert len(read_jks(OF_KEYTOOL, None).keys) == 1


def test_our_own_stores_are_read(tmp_path: Path) -> None:
    authority = Authority()
    issued = authority.issue("a")
    keys = issued.write_jks(tmp_path / "keys", "secret", "other").read_bytes()
    trust = authority.write_jks(tmp_path / "trust", "secret").read_bytes()
    (key,) = read_jks(keys, "secret").keys
    assert key.decrypt("other") == issued.key_bytes(encoding=DER)
    assert key.chain == issued.chain
    assert read_jks(trust, "secret").certificates == [authority.der]


def test_a_secret_is_not_shown() -> None:
    (key,) = read_jks(OF_KEYTOOL, "storepass").keys
    assert "protected" not in repr(key)


@pytest.mark.parametrize("head", [b"\xfe\xed\xfe\xed\0\0\0\3\0\0\0\0", b"PK\3\4\0\0\0\2\0\0\0\0"])
def test_other_files_are_refused(head: bytes) -> None:
    with pytest.raises(JksError, match="not a JKS store"):
        read_jks(head + bytes(20), None)


def test_an_unknown_kind_of_entry_is_refused() -> None:
    entry = struct.pack(">IH1sq", 3, 1, b"x", 0)
    with pytest.raises(JksError, match="unknown tag 3"):
        read_jks(sign_jks([entry], "secret"), "secret")
