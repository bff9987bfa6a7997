"""The identity of a listener: loaded, tested against itself, and guarded when it is replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID
from tests.certificates import HOSTS, Authority, Issued
from tests.unit.tls.conversations import shake_hands
from tests.unit.tls.test_context import ROOT, client_of, settings_of

from barnabas.model.errors import ConfigError
from barnabas.tls.identity import TlsIdentity, check_successor, load
from barnabas.tls.settings import TlsSettings, check_store_type
from barnabas.tls.stores import KeyStore


def identity(issued: Issued) -> TlsIdentity:
    return load(settings_of(issued), between_brokers=False)


def test_an_identity_serves_and_dials() -> None:
    own = load(settings_of(ROOT.issue("broker"), client_auth="required"), between_brokers=True)
    assert own.subject == "CN=broker"
    assert len(own.alternative_names) == len(HOSTS)
    assert own.client is not None
    _, far = shake_hands(own.client, own.server, "127.0.0.1")
    assert far.peer_certificate is not None
    shake_hands(client_of(ROOT.issue("client")), own.server)


def test_a_listener_for_clients_alone_dials_nobody() -> None:
    assert identity(ROOT.issue("broker")).client is None


def test_brokers_that_could_not_reach_each_other_do_not_start() -> None:
    """A server's certificate alone is not enough where brokers must show theirs as clients."""
    issued = ROOT.issue("broker", usages=[ExtendedKeyUsageOID.SERVER_AUTH])
    load(settings_of(issued), between_brokers=True)
    with pytest.raises(ConfigError, match=r"brokers could not connect.*unsuitable certificate"):
        load(settings_of(issued, client_auth="required"), between_brokers=True)
    with pytest.raises(ConfigError, match=r"brokers could not connect.*local issuer"):
        load(settings_of(Authority("other").issue("broker")), between_brokers=True)


def test_a_key_is_required() -> None:
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location is not set"):
        load(TlsSettings(), between_brokers=False)


@pytest.mark.parametrize(
    ("issued", "allowed", "refused"),
    [
        (ROOT.issue("broker"), {}, None),
        (ROOT.issue("broker", hosts=[*HOSTS, "more"]), {}, None),
        (ROOT.issue("another"), {}, "ssl.allow.dn.changes"),
        (ROOT.issue("another"), {"dn"}, None),
        (ROOT.issue("broker", hosts=HOSTS[:1]), {}, "ssl.allow.san.changes"),
        (ROOT.issue("broker", hosts=HOSTS[:1]), {"san"}, None),
        (ROOT.issue("another", hosts=HOSTS[:1]), {"dn"}, "ssl.allow.san.changes"),
    ],
)
def test_another_broker_does_not_take_its_place(
    issued: Issued, allowed: set[str], refused: str | None
) -> None:
    old, new = identity(ROOT.issue("broker")), identity(issued)

    def check() -> None:
        check_successor(
            old, new, allow_dn_changes="dn" in allowed, allow_san_changes="san" in allowed
        )

    if refused is None:
        check()
        assert new.server is not old.server
    else:
        with pytest.raises(ConfigError, match=refused):
            check()


def test_a_fingerprint_changes_with_its_files(tmp_path: Path) -> None:
    path = tmp_path / "store"
    issued = ROOT.issue("broker")
    issued.write_pem(path)
    settings = TlsSettings(KeyStore(str(path)), crl_location=str(tmp_path / "absent"))
    assert settings.files == (str(path), str(tmp_path / "absent"))
    first = settings.fingerprint()
    assert settings.fingerprint() == first
    status = path.stat()
    issued.write_pem(path)  # a new file, in place of the old
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert settings.fingerprint() != first
    path.unlink()
    assert settings.fingerprint() == ()


@pytest.mark.parametrize("name", ["JKS", "pkcs12", "PEM"])
def test_known_types_of_stores(name: str) -> None:
    assert check_store_type("ssl.keystore.type", name) is None


def test_unknown_types_of_stores_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.type=BCFKS: must be JKS, PKCS12 or PEM"):
        check_store_type("ssl.keystore.type", "BCFKS")
