"""Logins of librdkafka's properties become JAAS entries."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.compat.confluent_kafka import KafkaException
from barnabas.compat.confluent_kafka.logins import TokenProvider, jaas_of
from barnabas.config.jaas import jaas_entry


def options_of(mechanism: str, **login: str) -> dict[str, str]:
    properties = {name.replace("_", "."): value for name, value in login.items()}
    text = jaas_of(mechanism, properties)
    assert text is not None
    return dict(jaas_entry(text, "sasl.jaas.config").options)


def test_a_token_endpoint() -> None:
    assert options_of(
        "OAUTHBEARER",
        sasl_oauthbearer_client_id='my "app"',
        sasl_oauthbearer_client_credentials_client_secret="back\\slash",
        sasl_oauthbearer_scope="all",
        sasl_oauthbearer_extensions="cluster=a,pool=b",
        https_ca_location="/ca.pem",
    ) == {
        "clientId": 'my "app"',
        "clientSecret": "back\\slash",
        "scope": "all",
        "extension_cluster": "a",
        "extension_pool": "b",
        "ssl.ca.location": "/ca.pem",
    }
    with pytest.raises(KafkaException, match="cluster must be name=value"):
        options_of("OAUTHBEARER", sasl_oauthbearer_extensions="cluster")


def test_a_keytab() -> None:
    assert options_of("GSSAPI", sasl_kerberos_keytab="/k", sasl_kerberos_principal="p@R") == {
        "useKeyTab": "true",
        "keyTab": "/k",
        "principal": "p@R",
    }
    with pytest.raises(KafkaException, match=r"needs sasl\.kerberos\.principal"):
        jaas_of("GSSAPI", {"sasl.kerberos.keytab": "/k"})
    assert jaas_of("GSSAPI", {"sasl.kerberos.principal": "p"}) is None
    assert jaas_of("PLAIN", {"https.ca.location": "/ca"}) is None


def test_a_function_that_returns_tokens() -> None:
    given: list[Any] = [("first", 1.0), ("second", 2.0, "alice", {"pool": "b"})]
    asked: list[str] = []

    def function(config: str) -> Any:
        asked.append(config)
        return given.pop(0)

    provider = TokenProvider(function, "for=alice")
    assert (provider.token(), provider.extensions()) == ("first", {})
    assert (provider.token(), provider.extensions()) == ("second", {"pool": "b"})
    assert asked == ["for=alice"] * 2
