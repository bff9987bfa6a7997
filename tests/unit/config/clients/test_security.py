"""Options of TLS and SASL: what follows from them, and credentials that are missing."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.config.clients.common import CommonOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.config.option import Password
from barnabas.model.errors import ConfigError

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b";'


def parse(**given: Any) -> CommonOptions:
    return parse_client_options(CommonOptions, given)


@pytest.mark.parametrize(
    ("protocol", "tls", "sasl"),
    [
        ("PLAINTEXT", False, False),
        ("SSL", True, False),
        ("SASL_PLAINTEXT", False, True),
        ("SASL_SSL", True, True),
    ],
)
def test_the_protocol_says_what_is_used(protocol: str, tls: bool, sasl: bool) -> None:
    options = parse(security_protocol=protocol, sasl_plain_username="u", sasl_plain_password="p")
    assert (options.uses_tls, options.uses_sasl) == (tls, sasl)


def test_credentials_can_come_as_java_writes_them() -> None:
    options = parse(security_protocol="SASL_SSL", **{"sasl.jaas.config": JAAS})
    assert options.sasl_plain_username == "a"
    assert options.sasl_plain_password == Password("b")


def test_names_of_librdkafka_are_understood() -> None:
    options = parse(**{"sasl.username": "u", "sasl.password": "p", "ssl.ca.location": "ca.pem"})
    assert options.sasl_plain_username == "u"
    assert options.sasl_plain_password == Password("p")
    assert options.ssl_cafile == "ca.pem"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, r"needs sasl\.plain\.username and sasl\.plain\.password"),
        ({"sasl_mechanism": "OAUTHBEARER"}, r"needs sasl\.oauth\.token\.provider"),
    ],
)
def test_credentials_that_are_missing_are_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse(security_protocol="SASL_PLAINTEXT", **given)


def test_secrets_are_not_shown() -> None:
    shown = repr(parse(sasl_plain_password="hunter2", ssl_password="hunter2"))
    assert "hunter2" not in shown
    assert shown.count("[hidden]") == 2


def test_the_entry_of_a_login_is_kept_and_not_shown() -> None:
    login = 'X required clientId="c" clientSecret="hunter2";'
    options = parse(
        security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER", sasl_jaas_config=login
    )
    assert options.login_entry is not None
    assert options.login_entry.options["clientSecret"] == "hunter2"
    assert "hunter2" not in repr(options) + repr(options.login_entry)


def test_kerberos_needs_neither_name_nor_password() -> None:
    options = parse(security_protocol="SASL_SSL", sasl_mechanism="GSSAPI")
    assert options.login_entry is None
    assert options.sasl_kerberos_service_name is None
