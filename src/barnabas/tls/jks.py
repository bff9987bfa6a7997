"""Java's own key stores (JKS), read only.

    file   = magic FEEDFEED, version 1 or 2, count: uint32 each; entries; SHA-1 of 20 bytes
    entry  = tag: uint32, alias: string, time: int64, then
             tag 1 (key):          blob with the encrypted key, count: uint32, certificates
             tag 2 (certificate):  one certificate
    certificate = type: string (version 2 only), blob
    string = uint16 length, modified UTF-8;  blob = uint32 length, bytes

The SHA-1 is over the password in UTF-16, "Mighty Aphrodite", and all bytes before it. A key is
XORed with a key stream: SHA-1 of password and salt, then of password and the previous block.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass, field
from typing import Any

from barnabas.tls.certificate import elements

MAGIC = b"\xfe\xed\xfe\xed"
_SALT_BYTES = _CHECK_BYTES = 20
_KEY_PROTECTOR = bytes.fromhex("060a2b060104012a02110101")
"""1.3.6.1.4.1.42.2.17.1.1: the one way in which JKS encrypts keys."""


class JksError(ValueError):
    """A store that is damaged, or whose password is wrong."""


@dataclass(frozen=True, slots=True)
class JksKey:
    """A private key, still encrypted, and its certificates, leaf first."""

    alias: str
    protected: bytes = field(repr=False)
    chain: tuple[bytes, ...]

    def decrypt(self, password: str) -> bytes:
        """Return the key (PKCS #8); raise JksError if the password is wrong."""
        (info,) = elements(self.protected)
        algorithm, data = info.elements()
        if next(algorithm.elements()).encoded != _KEY_PROTECTOR:
            raise JksError(f"the key {self.alias!r} is encrypted in an unknown way")
        secret = password.encode("utf-16-be")
        salt = data.content[:_SALT_BYTES]
        body = data.content[_SALT_BYTES:-_CHECK_BYTES]
        stream = bytearray()
        block = salt
        while len(stream) < len(body):
            block = hashlib.sha1(secret + block).digest()
            stream += block
        key = bytes(left ^ right for left, right in zip(body, stream, strict=False))
        check = hashlib.sha1(secret + key).digest()
        if not hmac.compare_digest(check, data.content[-_CHECK_BYTES:]):
            raise JksError(f"the password of the key {self.alias!r} is wrong")
        return key


@dataclass(slots=True)
class JksStore:
    """The entries of a store."""

    keys: list[JksKey] = field(default_factory=list)
    certificates: list[bytes] = field(default_factory=list)


def read_jks(data: bytes, password: str | None) -> JksStore:
    """Return the entries; without a password (of a trust store) nothing proves them intact."""
    if password is not None:
        secret = password.encode("utf-16-be") + b"Mighty Aphrodite"
        if not hmac.compare_digest(hashlib.sha1(secret + data[:-20]).digest(), data[-20:]):
            raise JksError("the password is wrong, or the file is damaged")
    try:
        return _Reader(data[:-20]).store()
    except (struct.error, UnicodeDecodeError, IndexError) as failure:
        raise JksError("the file is damaged") from failure


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def store(self) -> JksStore:
        magic, self._version, count = self._unpack(">4sII")
        if magic != MAGIC or self._version not in (1, 2):
            raise JksError("not a JKS store")
        store = JksStore()
        for _ in range(count):
            (tag,) = self._unpack(">I")
            alias = self._string()
            self._unpack(">q")
            if tag == 1:
                protected = self._blob()
                (length,) = self._unpack(">I")
                chain = tuple(self._certificate() for _ in range(length))
                store.keys.append(JksKey(alias, protected, chain))
            elif tag == 2:
                store.certificates.append(self._certificate())
            else:
                raise JksError(f"entry {alias!r} has the unknown tag {tag}")
        return store

    def _certificate(self) -> bytes:
        if self._version == 2:
            self._string()
        return self._blob()

    def _unpack(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(layout, self._data, self._position)
        self._position += struct.calcsize(layout)
        return values

    def _take(self, size: int) -> bytes:
        if self._position + size > len(self._data):
            raise JksError("the file is damaged")
        taken = self._data[self._position : self._position + size]
        self._position += size
        return taken

    def _string(self) -> str:
        return self._take(*self._unpack(">H")).decode("utf-8", "surrogateescape")

    def _blob(self) -> bytes:
        return self._take(*self._unpack(">I"))
