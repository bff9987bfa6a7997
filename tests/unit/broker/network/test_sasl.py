"""SASL of a broker: what is read at the start, what changes, and how it logs in to others."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.unit.security.sasl.bearer import issuer, jwks

from barnabas.broker.network.sasl import Sasl
from barnabas.client.authentication import Authentication
from barnabas.config.broker import BrokerOptions
from barnabas.metrics.registry import Registry
from barnabas.model.errors import ConfigError
from barnabas.security.audit import AuditLog
from barnabas.security.delegation_tokens import DelegationTokens

BASE = {
    "listeners": "OPEN://127.0.0.1:0,IN://127.0.0.1:0",
    "listener.security.protocol.map": "OPEN:PLAINTEXT,IN:SASL_PLAINTEXT",
    "inter.broker.listener.name": "IN",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.in.plain.sasl.jaas.config": 'X required username="b" password="p";',
}


class Changing(Sasl):
    """SASL whose options a test changes."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.now = BrokerOptions.parse(dict(options))
        super().__init__(
            lambda: self.now,
            {},
            None,
            lambda: 0,
            lambda: 0,
            Registry(),
            lambda: 0.5,
            bytes,
            DelegationTokens(None, bytes),
            b"",
            AuditLog(lambda: 0, lambda ms, act: None),
        )

    def change(self, options: Mapping[str, str]) -> None:
        self.now = BrokerOptions.parse(dict(options))
        self.configure(self.now)


def started(options: Mapping[str, str], *, alone: bool = False) -> Changing:
    sasl = Changing(options)

    async def run() -> None:
        await sasl.start(alone=alone)
        await sasl.stop()

    asyncio.run(run())
    return sasl


def test_a_broker_logs_in_to_listeners_with_sasl() -> None:
    sasl = started(BASE)
    login = sasl.login_to("IN")
    assert isinstance(login, Authentication)
    assert login.mechanism == "PLAIN"
    assert sasl.login_to("OPEN") is None
    assert sasl.login_to("ELSEWHERE") is None


def test_a_login_is_kept_with_its_token_until_options_change() -> None:
    sasl = started(BASE)
    login = sasl.login_to("IN")
    assert sasl.login_to("IN") is login
    sasl.change({**BASE, "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256"})
    assert sasl.login_to("IN") is not login


def test_a_broker_without_credentials_for_others_does_not_start() -> None:
    without = {**BASE, "listener.name.in.plain.sasl.jaas.config": "X required;"}
    with pytest.raises(ConfigError, match="needs username and password"):
        started(without)
    assert started(without, alone=True).login_to("OPEN") is None


def test_a_broken_jaas_file_fails_the_start(tmp_path: Path) -> None:
    path = tmp_path / "jaas.conf"
    path.write_text('KafkaServer { X required user_a="hush" }')
    with pytest.raises(ConfigError) as failure:
        started({**BASE, "java.security.auth.login.config": str(path)})
    assert str(path) in str(failure.value)
    assert "hush" not in str(failure.value)


def test_keys_are_shared_by_listeners_and_fetched_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_bytes(jwks(issuer()))
    options = {
        **BASE,
        "listeners": "OPEN://127.0.0.1:0,IN://127.0.0.1:0,OUT://127.0.0.1:0",
        "listener.security.protocol.map": "OPEN:PLAINTEXT,IN:SASL_PLAINTEXT,OUT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": path.as_uri(),
    }
    sasl = started(options)
    (keys,) = sasl._keys.values()
    assert len(keys.keys) == 1
    path.unlink()
    with pytest.raises(ConfigError, match="cannot be fetched"):
        started(options)


def test_options_that_cannot_be_applied_change_nothing(caplog: pytest.LogCaptureFixture) -> None:
    sasl = started(BASE)
    before = sasl._mechanisms["IN"]
    sasl.change({**BASE, "sasl.enabled.mechanisms": "GSSAPI"})
    assert sasl._mechanisms["IN"] is before
    assert "listener IN: SASL stays as it was" in caplog.text
    sasl.change({**BASE, "sasl.enabled.mechanisms": "SCRAM-SHA-512"})
    assert list(sasl._mechanisms["IN"]) == ["SCRAM-SHA-512"]
