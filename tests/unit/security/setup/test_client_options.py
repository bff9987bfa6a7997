"""Options of clients: three ways to name the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.config.clients.common import CommonOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.security.setup.client_options import ClientOptions

PASSWORD = 'h"u\\sh'
KEYSTORE = Path("/c/client.pem")


def of(protocol: str, keystore: Path | None = KEYSTORE) -> ClientOptions:
    return ClientOptions("k1:9092,k2:9092", protocol, Path("/c/ca.crt"), "ada", PASSWORD, keystore)


@pytest.mark.parametrize("protocol", ["SASL_SSL", "SSL", "SASL_PLAINTEXT"])
@pytest.mark.parametrize("style", ["kafka", "librdkafka", "kafka_python"])
def test_our_clients_read_every_style_alike(protocol: str, style: str) -> None:
    given = getattr(of(protocol), style)()
    options = parse_client_options(CommonOptions, given)
    assert options.bootstrap_servers == ("k1:9092", "k2:9092")
    assert options.security_protocol == protocol
    if protocol != "SSL":
        assert options.sasl_mechanism == "SCRAM-SHA-512"
        assert options.sasl_plain_username == "ada"
        assert options.sasl_plain_password is not None
        assert options.sasl_plain_password.value == PASSWORD
    if protocol != "SASL_PLAINTEXT":
        assert options.ssl_cafile == "/c/ca.crt"
        assert str(KEYSTORE) in (options.ssl_keystore_location, options.ssl_certfile)


def test_only_what_the_protocol_needs_is_there() -> None:
    for style in ("kafka", "librdkafka", "kafka_python"):
        plain = getattr(of("SASL_PLAINTEXT"), style)()
        assert not [name for name in plain if name.startswith("ssl")]
        certified = getattr(of("SSL"), style)()
        assert not [name for name in certified if name.startswith("sasl")]
        without = getattr(of("SASL_SSL", None), style)()
        assert str(KEYSTORE) not in without.values()


def test_the_password_is_not_shown() -> None:
    assert "sh" not in repr(of("SASL_SSL")).replace("/c/", "")
