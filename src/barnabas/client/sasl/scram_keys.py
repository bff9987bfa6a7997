"""The arithmetic of SCRAM (RFC 5802, section 3), for both sides."""

from __future__ import annotations

import hashlib
import hmac
from typing import NamedTuple


class ScramKeys(NamedTuple):
    """What is derived from a salted password; secret."""

    client_key: bytes
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return "ScramKeys([hidden])"


def salted_password(digest: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Return a password salted; this takes milliseconds.

    The password is taken as it is, as in Kafka: others would normalise it (SASLprep) first.
    """
    return hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)


def scram_keys(digest: str, salted: bytes) -> ScramKeys:
    """Return the keys of a salted password."""
    client_key = hmac.digest(salted, b"Client Key", digest)
    return ScramKeys(
        client_key,
        hashlib.new(digest, client_key).digest(),
        hmac.digest(salted, b"Server Key", digest),
    )


def xor(one: bytes, other: bytes) -> bytes:
    """Return the bytes of two strings of the same length combined: a proof from key and signature.

    Combined with the signature again, a proof gives the key.
    """
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
