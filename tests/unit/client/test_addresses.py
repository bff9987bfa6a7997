"""Bootstrap addresses read as people write them."""

from __future__ import annotations

import pytest

from barnabas.client.addresses import Address, parse_addresses
from barnabas.model.errors import ConfigError


def test_hosts_ports_and_brackets() -> None:
    assert parse_addresses("a:1, b ,[::1]:3,[fe80::2]") == [
        Address("a", 1),
        Address("b", 9092),
        Address("::1", 3),
        Address("fe80::2", 9092),
    ]


def test_an_ipv6_address_prints_in_brackets() -> None:
    assert str(Address("::1", 9092)) == "[::1]:9092"
    assert str(Address("h", 1)) == "h:1"


@pytest.mark.parametrize(
    "text", ["a:", "a:b", ":1", "::1:9092", "[::1", "[::1]x", "a:0", "a:65536", "", " , "]
)
def test_anything_else_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigError, match="bootstrap address"):
        parse_addresses(text)
