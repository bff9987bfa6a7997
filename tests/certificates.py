"""Certificates for tests: an authority of the test's own, and stores of every kind.

    authority = Authority()
    broker = authority.issue("broker")           # good for 127.0.0.1 and localhost
    broker.write_pem(tmp_path / "broker.pem")
    authority.write(tmp_path / "ca.pem")

Keys are ECDSA on P-256 unless asked otherwise: an RSA key takes a hundred times as long to make.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

HOSTS = ("127.0.0.1", "::1", "localhost")
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
DER, PEM = serialization.Encoding.DER, serialization.Encoding.PEM


def name_of(common_name: str) -> x509.Name:
    """Return a subject with nothing but a common name."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


@dataclass(frozen=True)
class Issued:
    """A certificate, its key, and the certificates above it, without the root's."""

    certificate: x509.Certificate
    key: Key
    above: tuple[x509.Certificate, ...] = ()

    @property
    def chain(self) -> tuple[bytes, ...]:
        """Return the certificates (DER), leaf first."""
        return tuple(each.public_bytes(DER) for each in (self.certificate, *self.above))

    @property
    def chain_pem(self) -> str:
        return "".join(each.public_bytes(PEM).decode() for each in (self.certificate, *self.above))

    @property
    def key_pem(self) -> str:
        return self.key_bytes().decode()

    def key_bytes(
        self,
        password: str | None = None,
        encoding: serialization.Encoding = PEM,
        form: serialization.PrivateFormat = serialization.PrivateFormat.PKCS8,
    ) -> bytes:
        """Return the private key, encrypted if there is a password."""
        protection: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password is not None:
            protection = serialization.BestAvailableEncryption(password.encode())
        return self.key.private_bytes(encoding, form, protection)

    def write_pem(self, path: Path, password: str | None = None) -> Path:
        """Write key and chain to one file, which only its owner may read."""
        return write_secret(path, self.key_bytes(password) + self.chain_pem.encode())

    def write_pair(self, certificate: Path, key: Path) -> None:
        """Write chain and key to a file each."""
        certificate.write_text(self.chain_pem)
        write_secret(key, self.key_bytes())

    def write_pkcs12(self, path: Path, password: str) -> Path:
        """Write a PKCS12 key store."""
        protection = serialization.BestAvailableEncryption(password.encode())
        data = pkcs12.serialize_key_and_certificates(
            b"broker", self.key, self.certificate, self.above, protection
        )
        return write_secret(path, data)

    def write_jks(self, path: Path, password: str, key_password: str | None = None) -> Path:
        """Write a JKS key store."""
        key = self.key_bytes(encoding=DER)
        protected = protect_jks_key(key, key_password or password)
        entry = (
            struct.pack(">I", 1)
            + _string("broker")
            + struct.pack(">q", 0)
            + _blob(protected)
            + struct.pack(">I", len(self.chain))
            + b"".join(_string("X.509") + _blob(each) for each in self.chain)
        )
        return write_secret(path, sign_jks([entry], password))


class Authority:
    """A certificate authority."""

    def __init__(self, name: str = "test CA", above: Authority | None = None) -> None:
        """Make a root, or an intermediate authority below another."""
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = name_of(name)
        issuer = above or self
        self.certificate = (
            _builder(self.name, issuer.name, self.key, days=(-2, 3650))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(issuer.key, hashes.SHA256())
        )
        self._above: tuple[x509.Certificate, ...] = (
            () if above is None else (self.certificate, *above._above)
        )

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(DER)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(PEM).decode()

    def write(self, path: Path) -> Path:
        """Write the authority's certificate as PEM."""
        path.write_text(self.pem)
        return path

    def write_jks(self, path: Path, password: str) -> Path:
        """Write a JKS trust store with the authority's certificate."""
        entry = struct.pack(">I", 2) + _string("ca") + struct.pack(">q", 0)
        entry += _string("X.509") + _blob(self.der)
        path.write_bytes(sign_jks([entry], password))
        return path

    def write_pkcs12(self, path: Path, password: str) -> Path:
        """Write a PKCS12 trust store, as keytool does: certificates alone, marked as trusted."""
        trusted = pkcs12.PKCS12Certificate(self.certificate, b"ca")
        protection = serialization.BestAvailableEncryption(password.encode())
        path.write_bytes(pkcs12.serialize_java_truststore([trusted], protection))
        return path

    def issue(
        self,
        subject: str | x509.Name = "client",
        *,
        hosts: Sequence[str] = HOSTS,
        days: tuple[int, int] = (-1, 365),
        key: str = "ec",
        usages: Iterable[x509.ObjectIdentifier] = (
            ExtendedKeyUsageOID.SERVER_AUTH,
            ExtendedKeyUsageOID.CLIENT_AUTH,
        ),
    ) -> Issued:
        """Issue a certificate, by default one for a broker and a client on this machine.

        `days` is the first and the last day of its validity, from today.
        """
        own: Key = (
            rsa.generate_private_key(65537, 2048)
            if key == "rsa"
            else ec.generate_private_key(ec.SECP256R1())
        )
        named = name_of(subject) if isinstance(subject, str) else subject
        builder = _builder(named, self.name, own, days).add_extension(
            x509.BasicConstraints(ca=False, path_length=None), critical=True
        )
        if hosts:
            names = [_alternative_name(host) for host in hosts]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        if usages:
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        return Issued(builder.sign(self.key, hashes.SHA256()), own, self._above)

    def revoke(self, *issued: Issued) -> str:
        """Return a revocation list (PEM) with these certificates."""
        now = datetime.now(UTC)
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self.name)
            .last_update(now - timedelta(days=1))
            .next_update(now + timedelta(days=1))
        )
        for each in issued:
            builder = builder.add_revoked_certificate(
                x509.RevokedCertificateBuilder()
                .serial_number(each.certificate.serial_number)
                .revocation_date(now - timedelta(hours=1))
                .build()
            )
        return builder.sign(self.key, hashes.SHA256()).public_bytes(PEM).decode()


def write_secret(path: Path, data: bytes) -> Path:
    """Replace a file by one that only its owner may read, in one step."""
    written = path.with_name(f"{path.name}.new")
    written.unlink(missing_ok=True)
    descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    written.replace(path)
    return path


def protect_jks_key(key: bytes, password: str) -> bytes:
    """Return a key (PKCS #8) encrypted as in a JKS store."""
    secret = password.encode("utf-16-be")
    salt = block = hashlib.sha1(b"salt").digest()
    stream = bytearray()
    while len(stream) < len(key):
        block = hashlib.sha1(secret + block).digest()
        stream += block
    body = bytes(left ^ right for left, right in zip(key, stream, strict=False))
    data = salt + body + hashlib.sha1(secret + key).digest()
    algorithm = bytes.fromhex("300e060a2b060104012a021101010500")
    return _der(0x30, algorithm + _der(0x04, data))


def sign_jks(entries: Sequence[bytes], password: str) -> bytes:
    """Return the bytes of a JKS store with these entries."""
    body = b"\xfe\xed\xfe\xed" + struct.pack(">II", 2, len(entries)) + b"".join(entries)
    secret = password.encode("utf-16-be") + b"Mighty Aphrodite"
    return body + hashlib.sha1(secret + body).digest()


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: Key,
    days: tuple[int, int],
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=days[0]))
        .not_valid_after(now + timedelta(days=days[1]))
    )


def _alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    octets = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(octets)]) + octets + content


def _string(value: str) -> bytes:
    return struct.pack(">H", len(value)) + value.encode()


def _blob(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value
