"""How a broker logs in to others: from the JAAS entry of its own listener."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping

import pytest

from barnabas.broker.network.broker_login import broker_login
from barnabas.client.authentication import Converse
from barnabas.client.sasl.plain import Plain
from barnabas.client.sasl.scram import Scram
from barnabas.config.broker import BrokerOptions
from barnabas.config.jaas import JaasEntry, jaas_entry
from barnabas.model.errors import ConfigError
from barnabas.security.sasl.exchange import Login
from barnabas.security.sasl.jwt_validator import UnsecuredTokens
from barnabas.security.sasl.oauthbearer import OAuthBearer

NOW_MS = 1_700_000_000_000
ENTRY = jaas_entry('X required username="broker" password="hush" user_alice="x";', "x")


def login(
    mechanism: str, entry: JaasEntry | None, given: Mapping[str, str] | None = None
) -> Converse:
    options = BrokerOptions.parse({"log.dirs": "data", **(given or {})})
    return broker_login("INSIDE", mechanism, entry, options, lambda: 0.5, lambda: NOW_MS)


@pytest.mark.parametrize(
    ("mechanism", "kind"), [("PLAIN", Plain), ("SCRAM-SHA-256", Scram), ("SCRAM-SHA-512", Scram)]
)
def test_name_and_password_of_the_entry_are_used(mechanism: str, kind: type) -> None:
    began = login(mechanism, ENTRY)("host")
    assert isinstance(began, kind)
    assert b"broker" in asyncio.run(began.first())


def test_an_unsecured_token_names_the_broker() -> None:
    entry = jaas_entry('X required unsecuredLoginStringClaim_sub="broker";', "x")
    message = asyncio.run(login("OAUTHBEARER", entry)("host").first())
    step = OAuthBearer(UnsecuredTokens({})).step(message, NOW_MS)
    assert step.login == Login("broker", NOW_MS + 3_600_000)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize("text", [None, "X required;", 'X required username="hush";'])
def test_missing_credentials_are_named(mechanism: str, text: str | None) -> None:
    entry = None if text is None else jaas_entry(text, "x")
    with pytest.raises(ConfigError, match="needs username and password") as failure:
        login(mechanism, entry)
    assert f"listener.name.inside.{mechanism.lower()}.sasl.jaas.config" in str(failure.value)
    assert "hush" not in str(failure.value)


def test_an_endpoint_needs_credentials_of_the_entry() -> None:
    with pytest.raises(ConfigError, match=r"sasl\.oauthbearer\.token\.endpoint\.url: required"):
        login("OAUTHBEARER", ENTRY)
    with pytest.raises(
        ConfigError,
        match=r"listener\.name\.inside\.oauthbearer\.sasl\.jaas\.config: needs clientId",
    ):
        login("OAUTHBEARER", ENTRY, {"sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/t"})


def test_kerberos_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigError, match=r"install barnabas\[kerberos\]"):
        login("GSSAPI", ENTRY)


def test_other_mechanisms_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"sasl\.mechanism\.inter\.broker\.protocol=\?"):
        login("?", ENTRY)
