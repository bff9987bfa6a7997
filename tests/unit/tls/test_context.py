"""Contexts from settings: who trusts whom, with which versions and suites."""

from __future__ import annotations

import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID
from tests.certificates import Authority, Issued
from tests.unit.tls.conversations import read, shake_hands

from barnabas.config.option import Password
from barnabas.model.errors import ConfigError
from barnabas.tls.channel import TlsError
from barnabas.tls.context import client_context, server_context
from barnabas.tls.settings import TlsSettings
from barnabas.tls.stores import KeyStore, TrustStore

ROOT = Authority("root")
MIDDLE = Authority("middle", above=ROOT)
STRANGER = Authority("stranger")
BROKER = ROOT.issue("broker")


def keys_of(issued: Issued) -> KeyStore:
    return KeyStore(
        certificate_chain=Password(issued.chain_pem),
        key=Password(issued.key_pem),
    )


def settings_of(issued: Issued | None, *trusted: str, **more: Any) -> TlsSettings:
    trust = TrustStore(certificates=Password("\n".join(trusted or (ROOT.pem,))))
    return TlsSettings(keys_of(issued) if issued else KeyStore(), trust, **more)


def server_of(issued: Issued = BROKER, *trusted: str, **more: Any) -> ssl.SSLContext:
    settings = settings_of(issued, *trusted, **more)
    return server_context(settings, settings.key_store.read())


def client_of(issued: Issued | None = None, *trusted: str, **more: Any) -> ssl.SSLContext:
    settings = settings_of(issued, *trusted, **more)
    return client_context(settings, settings.key_store.read() if issued else None)


VALID = ROOT.issue("valid")
BY_MIDDLE = MIDDLE.issue("by an intermediate")
UNTRUSTED = STRANGER.issue("untrusted")
EXPIRED = ROOT.issue("expired", days=(-10, -1))
EARLY = ROOT.issue("not valid yet", days=(1, 10))
NOT_FOR_CLIENTS = ROOT.issue("server only", usages=[ExtendedKeyUsageOID.SERVER_AUTH])


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize(
    ("mode", "issued", "refused"),
    [
        ("none", None, None),
        ("none", VALID, None),
        ("none", UNTRUSTED, None),
        ("requested", None, None),
        ("requested", VALID, None),
        ("requested", UNTRUSTED, "unable to get local issuer certificate"),
        ("requested", EXPIRED, "certificate has expired"),
        ("required", None, "the client has no certificate, and ssl.client.auth=required"),
        ("required", VALID, None),
        ("required", BY_MIDDLE, None),
        ("required", UNTRUSTED, "unable to get local issuer certificate"),
        ("required", EXPIRED, "certificate has expired"),
        ("required", EARLY, "certificate is not yet valid"),
        ("required", NOT_FOR_CLIENTS, "unsuitable certificate purpose"),
    ],
)
def test_modes_of_client_authentication(
    mode: str, issued: Issued | None, refused: str | None, version: str
) -> None:
    server = server_of(client_auth=mode)
    client = client_of(issued, protocols=(version,))
    if refused is not None:
        with pytest.raises(TlsError, match=refused):
            shake_hands(client, server)
        return
    near, far = shake_hands(client, server)
    shown = issued is not None and mode != "none"
    assert far.peer_certificate == (issued.chain[0] if shown and issued else None)
    assert near.peer_certificate == BROKER.chain[0]


@pytest.mark.parametrize(
    ("issued", "host", "refused"),
    [
        (BROKER, "localhost", None),
        (BROKER, "127.0.0.1", None),
        (BROKER, "::1", None),
        (BROKER, "elsewhere", "Hostname mismatch"),
        (BROKER, "127.0.0.2", "IP address mismatch"),
        (ROOT.issue("only-a-name", hosts=()), "only-a-name", None),
        (ROOT.issue("a-name", hosts=["another"]), "a-name", "Hostname mismatch"),
        (EXPIRED, "localhost", "certificate has expired"),
        (UNTRUSTED, "localhost", "unable to get local issuer certificate"),
    ],
)
def test_a_client_checks_the_host_that_it_dials(
    issued: Issued, host: str, refused: str | None
) -> None:
    if refused is None:
        near, _ = shake_hands(client_of(), server_of(issued), host)
        assert near.peer_certificate == issued.chain[0]
    else:
        with pytest.raises(TlsError, match=f"certificate is rejected: .*{refused}"):
            shake_hands(client_of(), server_of(issued), host)


def test_without_the_check_of_the_host_the_chain_is_checked_still() -> None:
    shake_hands(client_of(check_hostname=False), server_of(), "elsewhere")
    with pytest.raises(TlsError, match="local issuer"):
        shake_hands(client_of(check_hostname=False), server_of(UNTRUSTED), "elsewhere")


@pytest.mark.parametrize(
    "trusted", [ROOT.pem, MIDDLE.pem, BY_MIDDLE.chain_pem], ids=["root", "middle", "leaf"]
)
def test_any_certificate_in_the_store_is_trusted_as_in_java(trusted: str) -> None:
    server = server_of(BROKER, trusted, client_auth="required")
    _, far = shake_hands(client_of(BY_MIDDLE), server)
    assert far.peer_certificate == BY_MIDDLE.chain[0]


def test_revoked_certificates_are_refused(tmp_path: Path) -> None:
    revoked = ROOT.issue("revoked")
    (tmp_path / "crl.pem").write_text(ROOT.revoke(revoked))
    server = server_of(client_auth="required", crl_location=str(tmp_path / "crl.pem"))
    shake_hands(client_of(VALID), server)
    with pytest.raises(TlsError, match="certificate revoked"):
        shake_hands(client_of(revoked), server)
    with pytest.raises(ConfigError, match=r"ssl\.crl\.location=.*absent: No such file"):
        server_of(client_auth="required", crl_location=str(tmp_path / "absent"))


@pytest.mark.parametrize("key", ["ec", "rsa"])
def test_both_kinds_of_keys_serve(key: str) -> None:
    near, far = shake_hands(client_of(), server_of(ROOT.issue("b", key=key)))
    far.receive(near.encrypt(b"hello"))
    assert read(far) == b"hello"


@pytest.mark.parametrize(
    ("offered", "asked", "used"),
    [
        (("TLSv1.2", "TLSv1.3"), ("TLSv1.2", "TLSv1.3"), "TLSv1.3"),
        (("TLSv1.2", "TLSv1.3"), ("TLSv1.2",), "TLSv1.2"),
        (("TLSv1.2",), ("TLSv1.2", "TLSv1.3"), "TLSv1.2"),
        (("TLSv1", "TLSv1.3"), ("TLSv1.2", "TLSv1.3"), "TLSv1.3"),
        (("TLSv1", "TLSv1.3"), ("TLSv1.2",), None),
        (("TLSv1.3",), ("TLSv1.2",), None),
        (("TLSv1.1",), ("TLSv1.1",), "TLSv1.1"),
    ],
)
def test_versions_are_those_that_both_enable(
    offered: tuple[str, ...], asked: tuple[str, ...], used: str | None
) -> None:
    server, client = server_of(protocols=offered), client_of(protocols=asked)
    if used is None:
        with pytest.raises(TlsError, match=r"in common|gave up"):
            shake_hands(client, server)
    else:
        near, _ = shake_hands(client, server)
        assert near.description().startswith(f"{used} ")


def test_the_suite_is_the_one_that_is_listed() -> None:
    suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    near, _ = shake_hands(client_of(), server_of(cipher_suites=(suite,)))
    assert near.description() == "TLSv1.2 ECDHE-ECDSA-AES128-GCM-SHA256"
    other = client_of(cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",))
    with pytest.raises(TlsError, match="no cipher suite in common"):
        shake_hands(other, server_of(cipher_suites=(suite,)))


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_no_ticket_is_given(version: str) -> None:
    near, _ = shake_hands(client_of(protocols=(version,)), server_of())
    session = near._tls.session
    assert session is None or not session.has_ticket


def test_a_key_of_another_certificate_is_refused() -> None:
    other = ROOT.issue("other")
    mixed = KeyStore(
        certificate_chain=Password(BROKER.chain_pem),
        key=Password(other.key_pem),
    )
    settings = replace(settings_of(None), key_store=mixed)
    with pytest.raises(ConfigError, match="key does not belong to the first certificate"):
        server_context(settings, settings.key_store.read())


def test_a_wrong_password_of_a_key_is_named_without_it(tmp_path: Path) -> None:
    path = str(BROKER.write_pem(tmp_path / "store", "right"))
    settings = TlsSettings(KeyStore(path, key_password=Password("wrong-secret")))
    with pytest.raises(ConfigError, match=r"is ssl\.key\.password right") as failure:
        server_context(settings, settings.key_store.read())
    assert "wrong-secret" not in str(failure.value)


def test_an_encrypted_key_serves(tmp_path: Path) -> None:
    path = str(BROKER.write_pem(tmp_path / "store", "right"))
    settings = TlsSettings(KeyStore(path, key_password=Password("right")))
    shake_hands(client_of(), server_context(settings, settings.key_store.read()))


def test_unknown_versions_are_refused() -> None:
    for protocols in (("SSLv3",), ()):
        with pytest.raises(ConfigError, match=r"ssl\.enabled\.protocols="):
            server_of(protocols=protocols)


def test_without_a_trust_store_the_systems_is_used() -> None:
    settings = TlsSettings(keys_of(BROKER), client_auth="required")
    server = server_context(settings, settings.key_store.read())
    with pytest.raises(TlsError, match="certificate is rejected"):
        shake_hands(client_of(VALID), server)
