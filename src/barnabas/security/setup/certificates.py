"""A certificate authority of the cluster's own, and the certificates that it issues.

Keys are ECDSA on P-256, which every client of the last ten years accepts: a handshake takes half
the time of RSA's. This module needs the package `cryptography`: see `check_library`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from barnabas.model.errors import ConfigError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

AUTHORITY_DAYS = 3650
CERTIFICATE_DAYS = 365
CLOCK_SKEW = timedelta(hours=1)
"""Certificates are valid from a little before they are issued: clocks differ."""


def check_library() -> None:
    """Raise ConfigError, with the remedy, unless certificates can be issued."""
    try:
        import cryptography.x509  # noqa: F401
    except ImportError:
        raise ConfigError(
            "certificates need the package cryptography: pip install 'barnabas[security]'"
        ) from None


def new_key() -> bytes:
    """Return a new private key as PEM (PKCS #8), not encrypted."""
    from cryptography.hazmat.primitives.asymmetric import ec

    return _key_pem(ec.generate_private_key(ec.SECP256R1()))


class Authority:
    """The authority whose certificate all brokers and clients trust."""

    def __init__(self, key: bytes, certificate: bytes) -> None:
        """Take both as PEM; raise ConfigError if they are unreadable or do not match."""
        from cryptography import x509

        self._key = _load_key(key)
        try:
            self._certificate = x509.load_pem_x509_certificate(certificate)
        except ValueError as failure:
            raise ConfigError(f"the authority's certificate is unreadable ({failure})") from failure
        if self._certificate.public_key() != self._key.public_key():
            raise ConfigError("the authority's key and certificate do not belong together")

    @property
    def expires(self) -> datetime:
        """Return when the authority's own certificate expires."""
        return self._certificate.not_valid_after_utc

    @staticmethod
    def certify(key: bytes, name: str, now: datetime) -> bytes:
        """Return the certificate (PEM) of a new authority with a private key."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization

        own = _load_key(key)
        subject = _name(name)
        usage = _key_usage(key_cert_sign=True, crl_sign=True)
        certificate = (
            _builder(subject, subject, own, now, now + timedelta(days=AUTHORITY_DAYS))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(own.public_key()), critical=False
            )
            .sign(own, hashes.SHA256())
        )
        return certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str, hosts: Sequence[str], now: datetime, unit: str = "") -> bytes:
        """Return a new private key and its certificate in one PEM.

        With `hosts` it is for a broker, which is also a client of others; without, for a client.
        """
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if hosts:
            usages.insert(0, ExtendedKeyUsageOID.SERVER_AUTH)
        until = min(now + timedelta(days=CERTIFICATE_DAYS), self.expires)
        public = self._certificate.public_key()
        assert isinstance(public, ec.EllipticCurvePublicKey)
        builder = (
            _builder(_name(name, unit), self._certificate.subject, key, now, until)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False
            )
        )
        if hosts:
            names = [_alternative_name(host) for host in hosts]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return _key_pem(key) + certificate.public_bytes(serialization.Encoding.PEM)

    def renew(self, pem: bytes, now: datetime) -> bytes:
        """Return a new key and certificate for the same subject and hosts."""
        from cryptography import x509
        from cryptography.x509.oid import NameOID

        old = certificate_in(pem)
        (name,) = old.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        units = old.subject.get_attributes_for_oid(NameOID.ORGANIZATIONAL_UNIT_NAME)
        hosts: list[str] = []
        try:
            extension = old.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        except x509.ExtensionNotFound:
            pass  # a client's
        else:
            hosts = [str(each.value) for each in extension.value]
        unit = str(units[0].value) if units else ""
        return self.issue(str(name.value), hosts, now, unit)


def certificate_in(pem: bytes) -> x509.Certificate:
    """Return the first certificate of a PEM; raise ConfigError if there is none."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificates(pem)[0]
    except ValueError as failure:
        raise ConfigError(f"no certificate can be read ({failure})") from failure


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    until: datetime,
) -> x509.CertificateBuilder:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(until)
    )


def _name(common_name: str, unit: str = "") -> x509.Name:
    """Return a subject; written as Java does, with the last part first, it begins with CN."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    parts = [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit)] if unit else []
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(**used: bool) -> x509.KeyUsage:
    from cryptography import x509

    names = (
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
        "encipher_only",
        "decipher_only",
    )
    return x509.KeyUsage(**{name: used.get(name, False) for name in names})


def _alternative_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _load_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        key = serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError) as failure:
        raise ConfigError(f"the authority's key is unreadable ({type(failure).__name__})") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigError("the authority's key must be an ECDSA key")
    return key


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
