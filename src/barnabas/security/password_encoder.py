"""Secrets in dynamic configs, encrypted as Kafka stores them: by `password.encoder.secret`.

The stored text says how it was made, `name:value` pairs separated by commas, so options of the
encoder can change while older values stay readable.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from barnabas.model.errors import ConfigError

CIPHER = "AES/CBC/PKCS5Padding"
KEY_FACTORY_PREFIX = "PBKDF2WithHmac"
DIGESTS = {"SHA1": "sha1", "SHA256": "sha256", "SHA512": "sha512"}
SALT_BYTES = 256
BLOCK_BYTES = 16


class Encoding(NamedTuple):
    """How new values are encrypted."""

    iterations: int
    key_bits: int


class PasswordEncoder:
    """Encrypts secrets by one secret, and decrypts what was encrypted by it or by an older one."""

    def __init__(
        self,
        secret: str,
        old_secret: str | None,
        encoding: Encoding,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        if encoding.key_bits not in (128, 192, 256):
            raise ConfigError(
                f"password.encoder.key.length={encoding.key_bits}: must be 128, 192 or 256"
            )
        self._secret = secret
        self._secrets = [secret] if old_secret is None else [secret, old_secret]
        self._encoding = encoding
        self._random_bytes = random_bytes
        self._algorithms = _algorithms()

    def encode(self, text: str) -> str:
        """Return the text to store."""
        salt, vector = self._random_bytes(SALT_BYTES), self._random_bytes(BLOCK_BYTES)
        iterations, key_bits = self._encoding
        plain = text.encode()
        missing = BLOCK_BYTES - len(plain) % BLOCK_BYTES
        encryptor = self._cipher("sha512", self._secret, salt, iterations, key_bits, vector)
        work = encryptor.encryptor()
        encrypted = work.update(plain + bytes([missing]) * missing) + work.finalize()
        pairs = {
            "keyFactoryAlgorithm": f"{KEY_FACTORY_PREFIX}SHA512",
            "cipherAlgorithm": CIPHER,
            "keyLength": key_bits,
            "salt": _base64(salt),
            "iterations": iterations,
            "encryptedPassword": _base64(encrypted),
            "passwordLength": len(text.encode("utf-16-le")) // 2,  # as Java counts
            "initializationVector": _base64(vector),
        }
        return ",".join(f"{name}:{value}" for name, value in pairs.items())

    def decode(self, stored: str) -> str:
        """Return the secret; raise ConfigError if it was encrypted by another one."""
        for secret in self._secrets:
            found = self._decoded(stored, secret)
            if found is not None:
                return found
        raise ConfigError("password.encoder.secret: it is not the one that encrypted this secret")

    def _decoded(self, stored: str, secret: str) -> str | None:
        try:
            pairs = dict(pair.split(":", 1) for pair in stored.split(","))
            if pairs["cipherAlgorithm"] != CIPHER:
                raise ConfigError(f"cipher {pairs['cipherAlgorithm']}: only {CIPHER} is supported")
            digest = DIGESTS[pairs["keyFactoryAlgorithm"].removeprefix(KEY_FACTORY_PREFIX)]
            cipher = self._cipher(
                digest,
                secret,
                base64.b64decode(pairs["salt"], validate=True),
                int(pairs["iterations"]),
                int(pairs["keyLength"]),
                base64.b64decode(pairs["initializationVector"], validate=True),
            )
            encrypted = base64.b64decode(pairs["encryptedPassword"], validate=True)
            length = int(pairs["passwordLength"])
            work = cipher.decryptor()
            plain = work.update(encrypted) + work.finalize()
        except (KeyError, ValueError, binascii.Error) as failure:
            raise ConfigError("a stored secret is not in the form of an encrypted one") from failure
        padding = plain[-1] if plain else 0
        if not 1 <= padding <= BLOCK_BYTES or plain[-padding:] != bytes([padding]) * padding:
            return None
        try:
            text = plain[:-padding].decode()
        except UnicodeDecodeError:
            return None
        return text if len(text.encode("utf-16-le")) // 2 == length else None

    def _cipher(
        self, digest: str, secret: str, salt: bytes, iterations: int, key_bits: int, vector: bytes
    ) -> Any:
        key = hashlib.pbkdf2_hmac(digest, secret.encode(), salt, iterations, key_bits // 8)
        ciphers, algorithms, modes = self._algorithms
        return ciphers(algorithms.AES(key), modes.CBC(vector))


def _algorithms() -> tuple[Any, Any, Any]:
    try:
        ciphers = import_module("cryptography.hazmat.primitives.ciphers")
    except ImportError:
        raise ConfigError(
            "password.encoder.secret: needs the extra security; install barnabas[security]"
        ) from None
    return ciphers.Cipher, ciphers.algorithms, ciphers.modes


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
