"""TLS of a listener: its settings by option, and certificates that change while it serves."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from tests.certificates import Authority, Issued, write_secret
from tests.unit.broker.encrypted import BROKER, CLIENT, ROOT, EncryptedServing
from tests.unit.broker.handlers.test_configs import BROKER as BROKER_RESOURCE
from tests.unit.broker.handlers.test_configs import SET, change
from tests.unit.broker.serving import Wire, metadata, wait_for

from barnabas.broker.network.listener_tls import tls_settings
from barnabas.config.broker import BrokerOptions
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import ConfigError

RENEWED = ROOT.issue("broker")
KEEPS = "listener SSL keeps its certificate and trusted certificates"


def settings_of(**options: str) -> Any:
    parsed = BrokerOptions.parse(
        {
            "listeners": "SSL://:1,SASL_SSL://:2",
            "inter.broker.listener.name": "SSL",
            "ssl.keystore.location": "everywhere",
            "ssl.client.auth": "required",
            **options,
        }
    )
    return [tls_settings(parsed, endpoint) for endpoint in parsed.endpoints.bind]


def test_options_of_a_listener_win() -> None:
    ssl_settings, sasl_settings = settings_of(
        **{"listener.name.sasl_ssl.ssl.keystore.location": "here"}
    )
    assert ssl_settings.key_store.location == "everywhere"
    assert sasl_settings.key_store.location == "here"


def test_with_sasl_certificates_are_asked_for_by_the_listeners_option_alone() -> None:
    assert [each.client_auth for each in settings_of()] == ["required", "none"]
    asked = settings_of(**{"listener.name.sasl_ssl.ssl.client.auth": "requested"})
    assert [each.client_auth for each in asked] == ["required", "requested"]


def test_the_check_of_host_names_can_be_disabled() -> None:
    assert settings_of()[0].check_hostname
    assert not settings_of(**{"ssl.endpoint.identification.algorithm": ""})[0].check_hostname


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ssl.keystore.location": "/absent"}, r"listeners=SSL://127\.0\.0\.1:0: ssl\.keystore\."),
        ({"ssl.keystore.type": "BCFKS"}, r"ssl\.keystore\.type=BCFKS: must be JKS"),
        ({"ssl.principal.mapping.rules": "nonsense"}, r"ssl\.principal\.mapping\.rules=nonsense"),
        ({"ssl.cipher.suites": "nonsense"}, r"ssl\.cipher\.suites=nonsense"),
    ],
)
def test_a_broker_that_cannot_secure_its_listener_does_not_start(
    tmp_path: Path, options: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        EncryptedServing(tmp_path, options).start()


def test_a_listener_needs_a_key(tmp_path: Path) -> None:
    serving = EncryptedServing(tmp_path)
    del serving.options["ssl.keystore.location"]
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location is not set"):
        serving.start()


@pytest.mark.parametrize("kind", ["pkcs12", "jks"])
def test_stores_of_java_serve(tmp_path: Path, kind: str) -> None:
    serving = EncryptedServing(tmp_path, {"ssl.client.auth": "required"})
    own = getattr(BROKER, f"write_{kind}")(tmp_path / "own", "secret")
    trusted = getattr(ROOT, f"write_{kind}")(tmp_path / "trusted", "other")
    serving.options |= {
        "ssl.keystore.location": str(own),
        "ssl.keystore.password": "secret",
        "ssl.keystore.type": "JKS",
        "ssl.truststore.location": str(trusted),
        "ssl.truststore.password": "other",
        "ssl.truststore.type": "JKS",
    }
    with serving, serving.connect_encrypted(CLIENT) as wire:
        assert serial(wire) == number(BROKER)
        metadata(wire)


# renewal


def number(issued: Issued) -> int:
    return issued.certificate.serial_number


def serial(wire: Wire) -> int:
    """Return the number of the certificate that the broker showed."""
    assert isinstance(wire.socket, ssl.SSLSocket)
    shown = wire.socket.getpeercert()
    assert shown is not None
    return int(str(shown["serialNumber"]), 16)


def look(serving: EncryptedServing) -> None:
    """Look at the files now."""
    serving.inside(serving.broker.parts.housekeeping.renew_tls)


def wait_until_shown(serving: EncryptedServing, issued: Issued) -> None:
    """Wait until new connections see a certificate."""

    def is_shown() -> bool:
        with serving.connect_encrypted() as wire:
            return serial(wire) == number(issued)

    wait_for(is_shown, "the listener shows its renewed certificate")


def wait_until_renewed(serving: EncryptedServing, before: ssl.SSLContext) -> None:
    """Wait until the listener has another context."""
    serving.wait_inside(lambda: context_of(serving) is not before, "the context is renewed")


def context_of(serving: EncryptedServing) -> ssl.SSLContext:
    (listener,) = serving.broker.parts.network._listeners
    assert listener.tls is not None
    return listener.tls.context


def test_a_renewed_file_serves_new_connections_and_old_ones_live(tmp_path: Path) -> None:
    with EncryptedServing(tmp_path) as serving, serving.connect_encrypted() as old:
        metadata(old)
        RENEWED.write_pem(serving.key_store)
        look(serving)
        wait_until_shown(serving, RENEWED)
        assert serial(old) == number(BROKER)
        metadata(old)


def test_files_are_looked_at_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.broker.housekeeping.TLS_RENEWAL_MS", 10)
    with EncryptedServing(tmp_path) as serving:
        RENEWED.write_pem(serving.key_store)
        wait_until_shown(serving, RENEWED)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "0 keys and 0 certificates"),
        (RENEWED.chain_pem.encode(), "0 keys and 1 certificates"),
        (RENEWED.key_pem.encode() + BROKER.chain_pem.encode(), "key does not belong"),
        (b"\xfe\xed\xfe\xed broken", "set ssl.keystore.password"),
    ],
    ids=["empty", "no key", "another key", "jks"],
)
def test_a_bad_file_keeps_the_old_certificate_with_one_line(
    tmp_path: Path, content: bytes, said: str
) -> None:
    with EncryptedServing(tmp_path) as serving:
        write_secret(serving.key_store, content)
        for _ in range(3):
            look(serving)
        wait_for(lambda: any(said in line for line in serving.lines.of()), said)
        serving.expect_line(KEEPS)
        with serving.connect_encrypted() as wire:
            assert serial(wire) == number(BROKER)
        look(serving)
        RENEWED.write_pem(serving.key_store)
        look(serving)
        wait_until_shown(serving, RENEWED)
        serving.expect_no_lines()


def test_another_brokers_certificate_is_not_taken(tmp_path: Path) -> None:
    with EncryptedServing(tmp_path) as serving:
        ROOT.issue("another").write_pem(serving.key_store)
        look(serving)
        serving.expect_line("is for 'CN=another', not for 'CN=broker'; set ssl.allow.dn.changes")
    allowed = {"ssl.allow.dn.changes": "true"}
    (tmp_path / "allowed").mkdir()
    with EncryptedServing(tmp_path / "allowed", allowed) as serving:
        another = ROOT.issue("another")
        another.write_pem(serving.key_store)
        look(serving)
        wait_until_shown(serving, another)


def test_a_certificate_that_brokers_would_not_trust_is_not_taken(tmp_path: Path) -> None:
    with EncryptedServing(tmp_path) as serving:
        Authority("other").issue("broker").write_pem(serving.key_store)
        look(serving)
        serving.expect_line("brokers could not connect to each other")


def test_renewed_trust_lets_others_in(tmp_path: Path) -> None:
    other = Authority("other")
    guest = other.issue("guest")
    with EncryptedServing(tmp_path, {"ssl.client.auth": "required"}) as serving:
        with serving.connect_encrypted(guest) as wire, pytest.raises(ssl.SSLError):
            metadata(wire)
        serving.expect_line("unable to get local issuer certificate")
        before = context_of(serving)
        serving.trust_store.write_text(ROOT.pem + other.pem)
        look(serving)
        wait_until_renewed(serving, before)
        with serving.connect_encrypted(guest) as wire:
            metadata(wire)


def test_a_revoked_client_is_rejected_once_the_list_is_renewed(tmp_path: Path) -> None:
    revocations = tmp_path / "revoked.pem"
    revocations.write_text(ROOT.revoke())
    options = {"ssl.client.auth": "required", "barnabas.ssl.crl.location": revocations}
    with EncryptedServing(tmp_path, options) as serving:
        with serving.connect_encrypted(CLIENT) as wire:
            metadata(wire)
        before = context_of(serving)
        revocations.write_text(ROOT.revoke(CLIENT))
        look(serving)
        wait_until_renewed(serving, before)
        with (
            serving.connect_encrypted(CLIENT) as wire,
            pytest.raises(ssl.SSLError, match="REVOKED"),
        ):
            metadata(wire)
        serving.expect_line("certificate revoked")


def alter(wire: Wire, *changes: tuple[str, str], dry_run: bool = False) -> Any:
    return change(
        wire,
        BROKER_RESOURCE,
        "0",
        *((name, SET, value) for name, value in changes),
        dry_run=dry_run,
    )


def test_a_changed_option_is_used_without_a_restart(tmp_path: Path) -> None:
    with EncryptedServing(tmp_path) as serving, serving.connect_encrypted() as wire:
        renewed = RENEWED.write_pem(tmp_path / "renewed.pem")
        result = alter(wire, ("listener.name.ssl.ssl.keystore.location", str(renewed)))
        assert result.error_code == 0, result.error_message
        wait_until_shown(serving, RENEWED)


def test_the_same_path_again_reads_the_file_again(tmp_path: Path) -> None:
    with EncryptedServing(tmp_path) as serving, serving.connect_encrypted() as wire:
        RENEWED.write_pem(serving.key_store)
        result = alter(wire, ("listener.name.ssl.ssl.keystore.location", str(serving.key_store)))
        assert result.error_code == 0, result.error_message
        wait_until_shown(serving, RENEWED)


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("ssl.keystore.location", "/does/not/exist", "No such file"),
        ("ssl.cipher.suites", "nonsense", "OpenSSL does not support it"),
        ("ssl.client.auth", "perhaps", "must be required, requested or none"),
        ("ssl.keystore.type", "BCFKS", "must be JKS, PKCS12 or PEM"),
    ],
)
def test_options_that_cannot_be_used_are_refused(
    tmp_path: Path, option: str, value: str, said: str, dry_run: bool
) -> None:
    with EncryptedServing(tmp_path) as serving, serving.connect_encrypted() as wire:
        result = alter(wire, (f"listener.name.ssl.{option}", value), dry_run=dry_run)
        assert result.error_code == ErrorCode.INVALID_CONFIG
        assert said in result.error_message
        with serving.connect_encrypted() as new:
            assert serial(new) == number(BROKER)


def test_client_authentication_is_changed_without_a_restart(tmp_path: Path) -> None:
    with EncryptedServing(tmp_path) as serving, serving.connect_encrypted() as wire:
        before = context_of(serving)
        assert alter(wire, ("listener.name.ssl.ssl.client.auth", "required")).error_code == 0
        wait_until_renewed(serving, before)
        metadata(wire)  # it was let in before
        with serving.connect_encrypted() as new, pytest.raises(ssl.SSLError, match="REQUIRED"):
            metadata(new)
        serving.expect_line("the client has no certificate")
        with serving.connect_encrypted(CLIENT) as new:
            metadata(new)
