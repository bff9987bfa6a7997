"""Certificates: whom they are for, how long, and that OpenSSL accepts them."""

from __future__ import annotations

import ssl
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from barnabas.model.errors import ConfigError
from barnabas.security.setup.certificates import (
    Authority,
    certificate_in,
    check_library,
    new_key,
)
from barnabas.tls.certificate import read_certificate
from barnabas.tls.distinguished_name import distinguished_name
from barnabas.tls.pem import blocks

NOW = datetime.now(UTC).replace(microsecond=0)
HOSTS = ("k1.example.com", "10.0.0.1", "::1")


def new_authority(now: datetime = NOW) -> tuple[Authority, bytes]:
    key = new_key()
    certificate = Authority.certify(key, "test CA", now)
    return Authority(key, certificate), certificate


def usages(certificate: x509.Certificate) -> set[x509.ObjectIdentifier]:
    return set(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def test_an_authority_lasts_ten_years_and_may_only_sign() -> None:
    authority, pem = new_authority()
    certificate = certificate_in(pem)
    assert isinstance(certificate.public_key(), ec.EllipticCurvePublicKey)
    assert authority.expires - NOW == timedelta(days=3650)
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert (constraints.ca, constraints.path_length) == (True, 0)


def test_a_broker_is_server_and_client_under_all_its_names() -> None:
    certificate = certificate_in(new_authority()[0].issue("broker", HOSTS, NOW, "broker 1"))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(each.value) for each in names] == [*HOSTS]
    assert usages(certificate) == {
        ExtendedKeyUsageOID.SERVER_AUTH,
        ExtendedKeyUsageOID.CLIENT_AUTH,
    }
    assert certificate.not_valid_after_utc - NOW == timedelta(days=365)
    assert certificate.not_valid_before_utc < NOW


def test_a_client_cannot_be_taken_for_a_broker() -> None:
    pem = new_authority()[0].issue("ada", (), NOW)
    assert usages(certificate_in(pem)) == {ExtendedKeyUsageOID.CLIENT_AUTH}


def test_the_subject_begins_with_the_name() -> None:
    pem = new_authority()[0].issue("broker", HOSTS, NOW, "broker 1").decode()
    [der] = [block.der() for block in blocks(pem) if block.is_certificate]
    assert distinguished_name(read_certificate(der).subject) == "CN=broker,OU=broker 1"


def test_openssl_accepts_both_ends(tmp_path: Path) -> None:
    """A handshake in memory, with certificates on both sides and the host name checked."""
    authority, ca = new_authority()
    for name, hosts in (("broker", HOSTS), ("client", ())):
        (tmp_path / name).write_bytes(authority.issue(name, hosts, NOW))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server.verify_mode = ssl.CERT_REQUIRED
    for context, name in ((server, "broker"), (client, "client")):
        context.load_cert_chain(tmp_path / name)
        context.load_verify_locations(cadata=ca.decode())
        context.verify_flags |= ssl.VERIFY_X509_STRICT  # the default from Python 3.13 on
    left, right = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(left, right, server_hostname="k1.example.com"),
        server.wrap_bio(right, left, server_side=True),
    ]
    waiting = list(ends)
    for _ in range(10):
        for end in list(waiting):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(end)
    assert waiting == []
    assert ends[1].getpeercert() is not None


def test_a_renewed_certificate_has_a_new_key_and_the_same_names() -> None:
    authority, _ = new_authority()
    later = NOW + timedelta(days=350)
    for hosts, unit in ((HOSTS, "broker 1"), ((), "")):
        old = authority.issue("who", hosts, NOW, unit)
        new = authority.renew(old, later)
        first, second = certificate_in(old), certificate_in(new)
        assert first.subject == second.subject
        assert usages(first) == usages(second)
        assert first.public_key() != second.public_key()
        assert second.not_valid_after_utc - later == timedelta(days=365)
    names = certificate_in(authority.renew(authority.issue("who", HOSTS, NOW), later))
    found = names.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(each.value) for each in found] == [*HOSTS]


def test_nothing_outlives_the_authority() -> None:
    authority, _ = new_authority(NOW - timedelta(days=3600))
    issued = certificate_in(authority.issue("ada", (), NOW))
    assert issued.not_valid_after_utc == authority.expires


def test_what_cannot_be_used_is_rejected() -> None:
    key, certificate = new_key(), Authority.certify(new_key(), "another", NOW)
    with pytest.raises(ConfigError, match="do not belong together"):
        Authority(key, certificate)
    with pytest.raises(ConfigError, match="certificate is unreadable"):
        Authority(key, b"nonsense")
    with pytest.raises(ConfigError, match="key is unreadable") as failed:
        Authority(b"secret nonsense", certificate)
    assert "secret" not in str(failed.value)
    with pytest.raises(ConfigError, match="no certificate can be read"):
        certificate_in(key)


def test_without_the_library_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check_library()
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.setitem(sys.modules, "cryptography.x509", None)
    with pytest.raises(ConfigError, match=r"pip install 'barnabas\[security\]'"):
        check_library()
