"""Who logged in and what was changed, in the audit log of a real broker, and no secret there."""

from __future__ import annotations

import hashlib
import json
import logging
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.certificates import Authority
from tests.unit.broker.encrypted import CLIENT, EncryptedServing
from tests.unit.broker.handlers.test_client_quotas import alter, entry
from tests.unit.broker.handlers.test_configs import BROKER, DELETE, SET, TOPIC, change
from tests.unit.broker.handlers.test_delegation_tokens import create
from tests.unit.broker.network.test_authentication import (
    LOGIN,
    authenticate,
    handshake,
    log_in,
)
from tests.unit.broker.serving import Serving, Wire, create_topic, metadata

from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.wire.messages.renew_delegation_token import RenewDelegationTokenRequest

SASL, SHORT = 1, 2
SECRETS = ("hush", "of the encoder", "token-secret")
OPTIONS = {
    "listeners": "OPEN://127.0.0.1:0,SASL://127.0.0.1:0,SHORT://127.0.0.1:0",
    "listener.security.protocol.map": "OPEN:PLAINTEXT,SASL:SASL_PLAINTEXT,SHORT:SASL_PLAINTEXT",
    "inter.broker.listener.name": "OPEN",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl.plain.sasl.jaas.config": f'{LOGIN} user_alice="hush";',
    "listener.name.short.plain.sasl.jaas.config": f'{LOGIN} user_alice="hush";',
    "listener.name.short.connections.max.reauth.ms": "3600000",
    "connection.failed.authentication.delay.ms": "0",
    "delegation.token.secret.key": "token-secret",
    "password.encoder.secret": "of the encoder",
}

Trail = Callable[[], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("data"), OPTIONS) as running:
        yield running


@pytest.fixture
def trail(serving: Serving, caplog: pytest.LogCaptureFixture) -> Iterator[Trail]:
    """Return the new lines, without what is the same in all; they never have a secret."""
    serving.inside(serving.broker.audit.flush)
    caplog.clear()
    caplog.set_level(logging.INFO, "barnabas.audit")

    def lines() -> list[dict[str, Any]]:
        found = _lines(caplog)
        assert all(line.pop("host") == "127.0.0.1" for line in found)
        assert all(line.pop("time") and line.pop("count") == 1 for line in found)
        caplog.clear()
        return found

    yield lines
    assert not any(secret in caplog.text for secret in SECRETS)


def _lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    records = [each for each in caplog.records if each.name == "barnabas.audit"]
    texts = [record.getMessage() for record in records]
    assert not any(secret in text for secret in SECRETS for text in texts)
    return [json.loads(text) for text in texts]


@pytest.fixture
def alice(serving: Serving) -> Iterator[Wire]:
    with serving.connect(SASL) as wire:
        log_in(wire, "alice", "hush")
        yield wire


def test_logins_are_recorded_for_debugging_alone(
    serving: Serving, trail: Trail, caplog: pytest.LogCaptureFixture
) -> None:
    with serving.connect(SASL) as wire:
        log_in(wire, "alice", "hush")
    assert trail() == []
    caplog.set_level(logging.DEBUG, "barnabas.audit")
    with serving.connect(SHORT) as wire:
        log_in(wire, "alice", "hush")
        log_in(wire, "alice", "hush")
    fields = {"principal": "User:alice", "listener": "SHORT", "mechanism": "PLAIN"}
    assert trail() == [
        {"event": "login", **fields, "result": "allowed"},
        {"event": "re-login", **fields, "result": "allowed"},
    ]


def test_failed_logins_are_recorded_with_the_reason(serving: Serving, trail: Trail) -> None:
    with serving.connect(SASL) as wire:
        assert handshake(wire).error_code == 0
        assert authenticate(wire, b"\0eve\0hush hush").error_code != 0
    serving.expect_line("authentication failed (PLAIN)")
    with serving.connect(SHORT) as wire:
        log_in(wire, "alice", "hush")
        assert handshake(wire).error_code == 0
        assert authenticate(wire, b"\0alice\0hush!").error_code != 0
    serving.expect_line("authentication failed (PLAIN)")
    first, again = trail()
    assert "eve" in first.pop("reason")
    assert "alice" in again.pop("reason")
    fields = {"mechanism": "PLAIN", "result": "denied"}
    assert first == {"event": "login", "listener": "SASL", **fields}
    assert again == {"event": "re-login", "listener": "SHORT", **fields}


def changed(event: str, **details: str) -> dict[str, str]:
    return {"event": event, "principal": "User:alice", "listener": "SASL", **details}


def test_users(alice: Wire, trail: Trail) -> None:
    salted = hashlib.pbkdf2_hmac("sha256", b"hush", b"salt", 4096)
    upsertion = ScramCredentialUpsertion(
        name="bob", mechanism=1, iterations=4096, salt=b"salt", salted_password=salted
    )
    for request in (
        AlterUserScramCredentialsRequest(upsertions=[upsertion]),
        AlterUserScramCredentialsRequest(
            deletions=[ScramCredentialDeletion(name="bob", mechanism=1)]
        ),
        AlterUserScramCredentialsRequest(  # which is not there, and changes nothing
            deletions=[ScramCredentialDeletion(name="bob", mechanism=1)]
        ),
    ):
        alice.ask(request)
    assert trail() == [
        changed("user changed", user="bob", changes="SCRAM-SHA-256 set"),
        changed("user changed", user="bob", changes="SCRAM-SHA-256 deleted"),
    ]


def test_quotas(alice: Wire, trail: Trail) -> None:
    entity = {"user": "bob", "client-id": None}
    assert alter(alice, entry(entity, {"producer_byte_rate": 1000.0}), validate_only=True) == [0]
    assert alter(alice, entry(entity, {"producer_byte_rate": 1000.0})) == [0]
    assert alter(alice, entry(entity, {"producer_byte_rate": None})) == [0]
    named = {"entity": "user bob, client-id (default)"}
    assert trail() == [
        changed("quota changed", **named, changes="producer_byte_rate=1000"),
        changed("quota changed", **named, changes="producer_byte_rate removed"),
    ]


def test_tokens(alice: Wire, trail: Trail) -> None:
    token = create(alice)
    renewed = alice.ask(RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=1_000))
    expired = alice.ask(ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1))
    named = {"token": token.token_id}
    assert trail() == [
        changed("token created", **named, owner="User:alice"),
        changed("token renewed", **named, expires=str(renewed.expiry_timestamp_ms)),
        changed("token expired", **named, expires=str(expired.expiry_timestamp_ms)),
    ]


def test_configs(serving: Serving, alice: Wire, trail: Trail) -> None:
    create_topic(alice, "audited")
    assert change(alice, TOPIC, "audited", ("retention.ms", SET, "1000")).error_code == 0
    assert change(alice, TOPIC, "audited", ("retention.ms", DELETE, None)).error_code == 0
    assert change(alice, TOPIC, "audited", ("retention.ms", SET, "x")).error_code != 0
    assert change(alice, TOPIC, "audited", ("retention.ms", SET, "5"), dry_run=True).error_code == 0
    secret = ("listener.name.sasl.plain.sasl.jaas.config", SET, f'{LOGIN} user_alice="hush";')
    number = str(serving.broker.broker_id)
    assert change(alice, BROKER, number, secret).error_code == 0
    assert trail() == [
        changed("configs changed", resource="topic audited", changes="set retention.ms=1000"),
        changed("configs changed", resource="topic audited", changes="delete retention.ms"),
        changed(
            "configs changed",
            resource=f"broker {number}",
            changes="set listener.name.sasl.plain.sasl.jaas.config=[hidden]",
        ),
    ]


def test_clients_with_certificates(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "barnabas.audit")
    with EncryptedServing(tmp_path, {"ssl.client.auth": "required"}) as serving:
        with serving.connect_encrypted(CLIENT) as wire:
            metadata(wire)
        (line,) = _lines(caplog)
        assert (line["event"], line["mechanism"], line["result"]) == ("login", "TLS", "allowed")
        assert line["principal"] == "User:CN=alice"
        caplog.clear()
        stranger = Authority("stranger").issue("client")
        with pytest.raises((ssl.SSLError, OSError)):
            metadata(serving.connect_encrypted(stranger))
        serving.expect_line("TLS handshake failed")
    (line,) = _lines(caplog)
    assert (line["event"], line["mechanism"], line["result"]) == ("login", "TLS", "denied")
    assert "principal" not in line
    assert line["reason"]
