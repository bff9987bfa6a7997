"""Key stores and trust stores: PEM in a file or in an option, PKCS12, JKS.

What a file is decides its content, not its name or `ssl.keystore.type`: since Java 9 `keytool`
writes PKCS12 whatever the suffix, and Java reads PKCS12 and JKS under either type.

An error names the option and the file, and never what is secret in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from barnabas.config.option import Password
from barnabas.model.errors import ConfigError
from barnabas.tls.certificate import MalformedCertificate, read_certificate
from barnabas.tls.jks import MAGIC, JksError, read_jks
from barnabas.tls.pem import Block, armour, blocks

TYPES = ("JKS", "PKCS12", "PEM")
_STORE_BYTES_MAX = 16 << 20


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private key and its certificates (DER), leaf first."""

    key: str = field(repr=False)
    """PEM; encrypted if there is a password."""
    chain: tuple[bytes, ...]
    password: str | None = field(default=None, repr=False)

    def pem(self) -> str:
        """Return key and certificates as OpenSSL reads them from one file."""
        return self.key + "".join(armour("CERTIFICATE", each) for each in self.chain)


@dataclass(frozen=True, slots=True)
class KeyStore:
    """Where a private key and its certificates are: in a file, in two, or in options."""

    location: str | None = None
    password: Password | None = None
    key_password: Password | None = None
    certificate_chain: Password | None = None
    key: Password | None = None
    key_location: str | None = None
    """A second file, with the key alone."""
    option: str = "ssl.keystore.location"
    password_option: str = "ssl.keystore.password"
    key_password_option: str = "ssl.key.password"
    """The same name twice: one password for both, which decrypts a key in PEM, too."""

    @property
    def is_set(self) -> bool:
        """Whether there is a store."""
        return any((self.location, self.certificate_chain, self.key, self.key_location))

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(each for each in (self.location, self.key_location) if each)

    def read(self) -> KeyPair:
        """Return the key and its certificates; raise ConfigError if that is not possible."""
        if self.location is None:
            return self._from_options()
        if self.key is not None or self.certificate_chain is not None:
            raise ConfigError(
                f"{self.option}={self.location}: ssl.keystore.key and "
                "ssl.keystore.certificate.chain are set, too; use one or the other"
            )
        data = _read(self.option, self.location)
        try:
            return self._from_file(data)
        except (JksError, MalformedCertificate, ValueError) as failure:
            if isinstance(failure, ConfigError):
                raise
            raise ConfigError(f"{self.option}={self.location}: {failure}") from failure

    def _from_options(self) -> KeyPair:
        if self.key is None or self.certificate_chain is None:
            raise ConfigError(
                "ssl.keystore.key and ssl.keystore.certificate.chain: a certificate and its key "
                "must be set together"
            )
        if self.password is not None:
            raise ConfigError(
                "ssl.keystore.password: PEM has no such password; use ssl.key.password"
            )
        found = [*blocks(self.key.value), *blocks(self.certificate_chain.value)]
        return self._from_pem(found, "ssl.keystore.key and ssl.keystore.certificate.chain")

    def _from_file(self, data: bytes) -> KeyPair:
        named = f"{self.option}={self.location}"
        if data.startswith(MAGIC):
            return self._from_jks(data)
        if data.startswith(b"\x30"):
            return self._from_pkcs12(data)
        found = blocks(data.decode("utf-8", "replace"))
        if self.key_location is not None:
            key = _read("ssl.keyfile", self.key_location).decode("utf-8", "replace")
            found = [block for block in found if not block.is_key] + blocks(key)
        if self.password is not None and found and not self._one_password:
            raise ConfigError(
                f"{named}: PEM has no {self.password_option}; use {self.key_password_option} for "
                "its key"
            )
        return self._from_pem(found, named)

    def _from_pem(self, found: Sequence[Block], named: str) -> KeyPair:
        keys = [block for block in found if block.is_key]
        try:
            chain = tuple(block.der() for block in found if block.is_certificate)
            texts = [block.text() for block in keys]
        except ValueError as failure:
            raise ConfigError(f"{named}: {failure}") from None
        if len(texts) != 1 or not chain:
            raise ConfigError(
                f"{named}: must have one private key and its certificates as PEM, not "
                f"{len(texts)} keys and {len(chain)} certificates"
            )
        if not keys[0].is_encrypted:
            return KeyPair(texts[0], chain)
        if self.key_password is None:
            raise ConfigError(f"{named}: the key is encrypted; set {self.key_password_option}")
        return KeyPair(texts[0], chain, self.key_password.value)

    @property
    def _one_password(self) -> bool:
        return self.password_option == self.key_password_option

    def _from_jks(self, data: bytes) -> KeyPair:
        password = self._store_password()
        store = read_jks(data, password)
        if not store.keys:
            raise JksError("the store has no private key")
        entry = store.keys[0]
        key = entry.decrypt(self.key_password.value if self.key_password else password)
        return KeyPair(armour("PRIVATE KEY", key), entry.chain)

    def _from_pkcs12(self, data: bytes) -> KeyPair:
        serialization, pkcs12 = _pkcs12_library(self.option, self.location)
        store = pkcs12.load_pkcs12(data, self._store_password().encode())
        if store.key is None or store.cert is None:
            raise ConfigError(f"{self.option}={self.location}: the store has no private key")
        key = store.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        der = serialization.Encoding.DER
        leaf = store.cert.certificate.public_bytes(der)
        others = [each.certificate.public_bytes(der) for each in store.additional_certs]
        return KeyPair(key.decode(), ordered(leaf, others))

    def _store_password(self) -> str:
        if self.password is None:
            raise ConfigError(f"{self.option}={self.location}: set {self.password_option}, too")
        return self.password.value


@dataclass(frozen=True, slots=True)
class TrustStore:
    """Where trusted certificates are: in a file or in an option."""

    location: str | None = None
    password: Password | None = None
    certificates: Password | None = None
    option: str = "ssl.truststore.location"
    password_option: str = "ssl.truststore.password"

    @property
    def is_set(self) -> bool:
        """Whether there is a store; if not, the system's CAs are trusted."""
        return self.location is not None or self.certificates is not None

    @property
    def files(self) -> tuple[str, ...]:
        return () if self.location is None else (self.location,)

    def read(self) -> tuple[bytes, ...]:
        """Return the trusted certificates (DER); raise ConfigError if there are none."""
        found: list[bytes] = []
        if self.certificates is not None:
            found += self._from_pem(self.certificates.value, "ssl.truststore.certificates")
        if self.location is not None:
            data = _read(self.option, self.location)
            try:
                found += self._from_file(data)
            except (JksError, ValueError) as failure:
                if isinstance(failure, ConfigError):
                    raise
                raise ConfigError(f"{self.option}={self.location}: {failure}") from failure
        return tuple(found)

    def _from_file(self, data: bytes) -> Sequence[bytes]:
        named = f"{self.option}={self.location}"
        if data.startswith(MAGIC):
            store = read_jks(data, self.password.value if self.password else None)
            found: Sequence[bytes] = store.certificates
            if not found:
                raise JksError("the store has no trusted certificate")
            return found
        if data.startswith(b"\x30"):
            serialization, pkcs12 = _pkcs12_library(self.option, self.location)
            password = self.password.value.encode() if self.password else None
            trusted = pkcs12.load_pkcs12(data, password).additional_certs
            if not trusted:
                raise ConfigError(f"{named}: the store has no trusted certificate")
            return [each.certificate.public_bytes(serialization.Encoding.DER) for each in trusted]
        if self.password is not None:
            raise ConfigError(f"{named}: PEM has no {self.password_option}")
        return self._from_pem(data.decode("utf-8", "replace"), named)

    def _from_pem(self, text: str, named: str) -> Sequence[bytes]:
        try:
            found = [block.der() for block in blocks(text) if block.is_certificate]
        except ValueError as failure:
            raise ConfigError(f"{named}: not PEM ({failure})") from None
        if not found:
            raise ConfigError(f"{named}: not PEM (no certificate found)")
        return found


def ordered(leaf: bytes, others: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return a chain in the order of its issuers: PKCS12 keeps certificates in any order."""
    chain = [leaf]
    left = {read_certificate(each).subject: each for each in others}
    current = read_certificate(leaf)
    while not current.is_self_issued and current.issuer in left:
        chain.append(left.pop(current.issuer))
        current = read_certificate(chain[-1])
    return tuple(chain)


def _read(option: str, location: str) -> bytes:
    try:
        with Path(location).open("rb") as file:
            return file.read(_STORE_BYTES_MAX)
    except OSError as failure:
        raise ConfigError(f"{option}={location}: {failure.strerror or failure}") from failure


def _pkcs12_library(option: str, location: str | None):  # type: ignore[no-untyped-def]
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise ConfigError(
            f"{option}={location}: PKCS12 needs a library: pip install 'barnabas[security]', "
            "or convert the store to PEM"
        ) from None
    return serialization, pkcs12
