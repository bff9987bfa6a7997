"""The mechanisms of a listener: whose options count, and what cannot be offered."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from tests.unit.security.sasl.test_scram import Tokens

from barnabas.config.broker import BrokerOptions
from barnabas.config.jaas import jaas_file
from barnabas.model.errors import ConfigError
from barnabas.security.sasl.exchange import Login
from barnabas.security.sasl.jwks import SigningKeys
from barnabas.security.sasl.mechanisms import SaslSources, login_entry, mechanisms_of
from barnabas.security.sasl.oauthbearer import OAuthBearer
from barnabas.security.sasl.plain import Plain
from barnabas.security.sasl.scram import Scram, ScramSecrets

URLS: list[str | None] = []


def _keys(options: BrokerOptions) -> SigningKeys:
    URLS.append(options.sasl_oauthbearer_jwks_endpoint_url)
    return SigningKeys("keys")


SOURCES = SaslSources(scram=ScramSecrets(lambda *_: None, Tokens(), b"", bytes), signing_keys=_keys)
PLAIN = "listener.name.in.plain.sasl.jaas.config"
UNSECURED = "org.apache.kafka.x.OAuthBearerUnsecuredValidatorCallbackHandler"
FILE = jaas_file(
    'KafkaServer { x.ScramLoginModule required; x.PlainLoginModule required user_a="general"; };'
    'in.KafkaServer { x.PlainLoginModule required user_a="special"; };',
    "file",
)


def built(sections: Any = None, **options: str) -> dict[str, Any]:
    given = {name.replace("__", "-").replace("_", "."): value for name, value in options.items()}
    return mechanisms_of(BrokerOptions.parse(given), "IN", sections or {}, SOURCES)


def test_enabled_mechanisms_keep_their_order() -> None:
    found = mechanisms_of(
        BrokerOptions.parse(
            {
                "sasl.enabled.mechanisms": "GSSAPI",
                "listener.name.in.sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN,scram-sha-256",
                PLAIN: "x.PlainLoginModule required;",
            }
        ),
        "IN",
        {},
        SOURCES,
    )
    assert list(found) == ["SCRAM-SHA-512", "PLAIN", "SCRAM-SHA-256"]
    kinds = [type(begin()) for begin in found.values()]
    assert kinds == [Scram, Plain, Scram]


@pytest.mark.parametrize(
    ("listener", "text", "password"),
    [
        ("IN", 'x.Y required user_a="option";', "option"),
        ("IN", None, "special"),
        ("OUT", None, "general"),
    ],
)
def test_the_option_wins_then_the_section_of_the_listener(
    listener: str, text: str | None, password: str
) -> None:
    options = BrokerOptions.parse({PLAIN: text} if text is not None else {})
    entry = login_entry(options, listener, "PLAIN", FILE)
    assert entry is not None
    assert entry.options == {"user_a": password}


def test_a_section_without_the_module_has_no_entry() -> None:
    assert login_entry(BrokerOptions.parse({}), "IN", "SCRAM-SHA-256", FILE) is None
    assert login_entry(BrokerOptions.parse({}), "OUT", "SCRAM-SHA-256", FILE) is not None
    assert login_entry(BrokerOptions.parse({}), "OUT", "SCRAM-SHA-256", {}) is None


def test_the_general_option_is_not_used() -> None:
    """As in Kafka, where it is the login of clients."""
    options = BrokerOptions.parse({"sasl.jaas.config": 'x.PlainLoginModule required user_a="b";'})
    assert login_entry(options, "IN", "PLAIN", {}) is None


def test_signed_tokens_are_checked_with_the_listeners_keys() -> None:
    options = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": "https://general.example",
        "listener.name.in.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": "https://in.example",
        "sasl.server.callback.handler.class": "a.b.OAuthBearerValidatorCallbackHandler",
    }
    found = mechanisms_of(BrokerOptions.parse(options), "IN", {}, SOURCES)
    assert isinstance(found["OAUTHBEARER"](), OAuthBearer)
    assert URLS[-1] == "https://in.example"


def test_unsigned_tokens_are_accepted_only_by_name() -> None:
    options = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.in.oauthbearer.sasl.server.callback.handler.class": UNSECURED,
    }
    found = mechanisms_of(BrokerOptions.parse(options), "IN", {}, SOURCES)
    message = b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIiwiZXhwIjo5fQ.\x01\x01"
    assert found["OAUTHBEARER"]().step(message, 0).login == Login("a", 9000)
    with pytest.raises(ConfigError, match=r"sasl\.oauthbearer\.jwks\.endpoint\.url: required"):
        mechanisms_of(BrokerOptions.parse(options), "OUT", {}, SOURCES)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"sasl_enabled_mechanisms": ""}, "needs at least one"),
        ({}, "sasl.enabled.mechanisms=GSSAPI"),
        ({"sasl_enabled_mechanisms": "X"}, "sasl.enabled.mechanisms=X: must be among PLAIN, SCRAM"),
        ({"sasl_enabled_mechanisms": "PLAIN"}, f"{PLAIN}: required for PLAIN"),
        ({"sasl_enabled_mechanisms": "OAUTHBEARER"}, "jwks.endpoint.url: required"),
        (
            {
                "sasl_enabled_mechanisms": "OAUTHBEARER",
                "sasl_server_callback_handler_class": "com.example.Mine",
            },
            "sasl.server.callback.handler.class=com.example.Mine: must be",
        ),
    ],
)
def test_what_cannot_be_offered_is_named(options: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError) as failure:
        built(**options)
    assert why in str(failure.value)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(ConfigError, match=r"install barnabas\[security\]"):
        built(
            sasl_enabled_mechanisms="OAUTHBEARER",
            sasl_oauthbearer_jwks_endpoint_url="https://x.example",
        )
