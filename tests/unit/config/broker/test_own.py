"""The address of the metrics: a host and a port, this machine alone unless a host is given."""

from __future__ import annotations

import pytest

from barnabas.config.broker import BrokerOptions
from barnabas.config.broker.own import parse_metrics_address
from barnabas.model.errors import ConfigError

NAME = "barnabas.metrics.listener"


@pytest.mark.parametrize(
    ("value", "host", "port"),
    [
        ("127.0.0.1:9404", "127.0.0.1", 9404),
        (":9404", "127.0.0.1", 9404),
        ("0.0.0.0:0", "0.0.0.0", 0),
        ("broker.example:65535", "broker.example", 65535),
        ("[::1]:9404", "::1", 9404),
    ],
)
def test_addresses(value: str, host: str, port: int) -> None:
    options = BrokerOptions.parse({NAME: value})
    assert options.metrics_address == (host, port)


@pytest.mark.parametrize("value", [None, ""])
def test_without_an_address_nothing_is_served(value: str | None) -> None:
    assert parse_metrics_address(value) is None
    assert BrokerOptions.parse({}).metrics_address is None


@pytest.mark.parametrize(
    "value", ["9404", "host", "host:", "host:65536", "host:-1", "::1:9404", "http://host:80", "h:٣"]
)
def test_what_is_no_address_is_rejected(value: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        BrokerOptions.parse({NAME: value})
    assert str(refusal.value) == f"{NAME}={value}: must be host:port, with a port from 0 to 65535"
