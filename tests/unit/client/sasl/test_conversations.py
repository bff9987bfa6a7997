"""Which login options and a JAAS entry make, and what they lack."""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from pathlib import Path
from typing import Any

import pytest
from tests.certificates import Authority
from tests.unit.client.sasl.test_bearer_token import claims_of, jwt
from tests.unit.client.sasl.token_server import CLIENT, SECRET, token_server

from barnabas.client.authentication import Converse
from barnabas.client.errors import ConnectError
from barnabas.client.sasl.conversations import with_password, with_ticket, with_token
from barnabas.config.clients.common import CommonOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.model.errors import ConfigError

URL = "sasl.oauthbearer.token.endpoint.url"
JAAS = {"clientId": CLIENT, "clientSecret": SECRET}
PACKAGE = "org.apache.kafka.common.security.oauthbearer"
UNSECURED = {"unsecuredLoginStringClaim_sub": "alice", "unsecuredLoginExtension_poolId": "p1"}


def first(converse: Converse) -> bytes:
    return asyncio.run(converse("broker1").first())


def by_token(given: dict[str, Any], jaas: dict[str, str]) -> Converse:
    options = parse_client_options(CommonOptions, given)
    return with_token(options, jaas, "some.jaas", lambda: 0.5)


def token() -> str:
    return jwt({"sub": "alice", "iat": time.time(), "exp": time.time() + 3600})


def test_a_password_is_sent_or_proved() -> None:
    assert first(with_password("PLAIN", "alice", "secret", {})) == b"\0alice\0secret"
    assert first(with_password("SCRAM-SHA-256", "alice", "s", {})).startswith(b"n,,n=alice,r=")


@pytest.mark.parametrize(("value", "announced"), [("true", True), ("TRUE", True), ("no", False)])
def test_the_entry_says_whether_it_is_a_delegation_token(value: str, announced: bool) -> None:
    message = first(with_password("SCRAM-SHA-512", "id", "hmac", {"tokenauth": value}))
    assert message.endswith(b",tokenauth=true") is announced


@pytest.mark.parametrize(
    "handler",
    [
        None,
        f"{PACKAGE}.OAuthBearerLoginCallbackHandler",
        f"{PACKAGE}.secured.OAuthBearerLoginCallbackHandler",
    ],
)
def test_a_token_comes_from_the_endpoint_once(handler: str | None) -> None:
    with token_server(token) as server:
        jaas = {**JAAS, "scope": "read", "extension_poolId": "p1"}
        given = {URL: server.url, "sasl.login.callback.handler.class": handler}
        converse = by_token(given, jaas)

        async def run() -> list[bytes]:
            return [await converse("broker1").first() for _ in range(3)]

        messages = asyncio.run(run())
    assert len(set(messages)) == 1
    assert messages[0].startswith(b"n,,\x01auth=Bearer ey")
    assert messages[0].endswith(b"\x01poolId=p1\x01\x01")
    assert server.asked == [{"grant_type": ["client_credentials"], "scope": ["read"]}]


def test_an_endpoint_over_tls_is_trusted_by_the_entry_alone(tmp_path: Path) -> None:
    authority = Authority("root")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.issue("server").write_pem(tmp_path / "server.pem"))
    cafile = str(authority.write(tmp_path / "ca.pem"))
    with token_server(token, tls) as server:
        given = {URL: server.url, "sasl.login.retry.backoff.max.ms": 1}
        trusting = {**JAAS, "ssl.truststore.location": cafile, "ssl.truststore.type": "PEM"}
        assert b"auth=Bearer ey" in first(by_token(given, trusting))
        with pytest.raises(ConnectError, match="certificate verify failed"):
            first(by_token({**given, "ssl.truststore.location": cafile}, JAAS))


def test_a_file_has_the_token(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(token())
    assert b"auth=Bearer ey" in first(by_token({URL: path.as_uri()}, {}))


@pytest.mark.parametrize(
    "handler", [None, f"{PACKAGE}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"]
)
def test_unsigned_tokens_are_made_when_the_entry_has_claims(handler: str | None) -> None:
    message = first(by_token({"sasl.login.callback.handler.class": handler}, UNSECURED))
    sent = message.split(b"\x01")
    assert sent[2] == b"poolId=p1"
    assert claims_of(sent[1].decode())["sub"] == "alice"


@pytest.mark.parametrize(
    ("given", "jaas", "why"),
    [
        ({}, {}, f"{URL}: required for OAUTHBEARER, with clientId"),
        ({}, JAAS, f"{URL}: required for OAUTHBEARER"),
        ({URL: "http://h/"}, {}, "some.jaas: needs clientId"),
        ({URL: "ldap://h/"}, JAAS, f"{URL}=ldap://h/: must begin with https://"),
        ({URL: "http://h/"}, {**JAAS, "extension_auth": "x"}, "some.jaas: extension_auth"),
        (
            {"sasl.login.callback.handler.class": "com.example.Handler"},
            JAAS,
            "sasl.login.callback.handler.class=com.example.Handler: must be",
        ),
        (
            {"sasl.login.callback.handler.class": "OAuthBearerUnsecuredLoginCallbackHandler"},
            JAAS,
            "some.jaas: needs unsecuredLoginStringClaim_sub",
        ),
        (
            {URL: "https://h/"},
            {**JAAS, "ssl.truststore.location": "/absent"},
            "ssl.cafile=/absent",
        ),
    ],
)
def test_what_is_missing_is_named(given: dict[str, Any], jaas: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(why)) as failure:
        by_token(given, jaas)
    assert SECRET not in str(failure.value)


def test_kerberos_is_asked_for_the_host_that_is_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts: list[str] = []

    def begin(host: str) -> Any:
        hosts.append(host)
        raise AssertionError

    def kerberos(jaas: Any, option: str, service: str | None, name: object) -> Any:
        assert (jaas, option, service, name) == ({"a": "b"}, "some.jaas", "broker", None)
        return begin

    monkeypatch.setattr("barnabas.client.sasl.gssapi.kerberos", kerberos)
    options = parse_client_options(CommonOptions, {"sasl.kerberos.service.name": "broker"})
    for domain in (None, "elsewhere"):
        with pytest.raises(AssertionError):
            first(with_ticket(options, {"a": "b"}, "some.jaas", domain=domain))
    assert hosts == ["broker1", "elsewhere"]
