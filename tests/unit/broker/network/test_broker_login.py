"""How a broker logs in to others: from the JAAS entry of its own listener."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.network.broker_login import broker_login
from barnabas.client.sasl.plain import Plain
from barnabas.client.sasl.scram import Scram
from barnabas.config.jaas import jaas_entry
from barnabas.model.errors import ConfigError
from barnabas.security.sasl.exchange import Login
from barnabas.security.sasl.jwt_validator import UnsecuredTokens
from barnabas.security.sasl.oauthbearer import OAuthBearer

NOW_MS = 1_700_000_000_000
ENTRY = jaas_entry('X required username="broker" password="hush" user_alice="x";', "x")


@pytest.mark.parametrize(
    ("mechanism", "kind"), [("PLAIN", Plain), ("SCRAM-SHA-256", Scram), ("SCRAM-SHA-512", Scram)]
)
def test_name_and_password_of_the_entry_are_used(mechanism: str, kind: type) -> None:
    login = broker_login("INSIDE", mechanism, ENTRY, lambda: NOW_MS)()
    assert isinstance(login, kind)
    assert b"broker" in asyncio.run(login.first())


def test_an_unsecured_token_names_the_broker() -> None:
    entry = jaas_entry('X required unsecuredLoginStringClaim_sub="broker";', "x")
    message = asyncio.run(broker_login("INSIDE", "OAUTHBEARER", entry, lambda: NOW_MS)().first())
    step = OAuthBearer(UnsecuredTokens({})).step(message, NOW_MS)
    assert step.login == Login("broker", NOW_MS + 3_600_000)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize("text", [None, "X required;", 'X required username="hush";'])
def test_missing_credentials_are_named(mechanism: str, text: str | None) -> None:
    entry = None if text is None else jaas_entry(text, "x")
    with pytest.raises(ConfigError, match="needs username and password") as failure:
        broker_login("INSIDE", mechanism, entry, lambda: NOW_MS)
    assert f"listener.name.inside.{mechanism.lower()}.sasl.jaas.config" in str(failure.value)
    assert "hush" not in str(failure.value)


@pytest.mark.parametrize("mechanism", ["GSSAPI", "OAUTHBEARER", "?"])
def test_other_mechanisms_are_refused(mechanism: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.mechanism\.inter\.broker\.protocol="):
        broker_login("INSIDE", mechanism, ENTRY, lambda: NOW_MS)
