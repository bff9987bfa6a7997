"""Where the console listens, and under which names it answers."""

from __future__ import annotations

import pytest

from barnabas.console.address import ConsoleAddress, Hosts, check_exposure, parse_address
from barnabas.model.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8080", ("127.0.0.1", 8080)),
        ("localhost", ("localhost", 8080)),
        (":9000", ("127.0.0.1", 9000)),
        ("9000", ("127.0.0.1", 9000)),
        ("[::1]:1", ("::1", 1)),
        ("[::1]", ("::1", 8080)),
        ("::1", ("::1", 8080)),
        (" 0.0.0.0:0 ", ("0.0.0.0", 0)),
    ],
)
def test_an_address_may_leave_out_what_is_usual(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["h:x", "h:70000", "[::1", "[::1]x", "h:-1"])
def test_another_text_is_rejected(text: str) -> None:
    with pytest.raises(ConfigError, match=r"barnabas\.console\.listener="):
        parse_address(text)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.1.2.3", True), ("::1", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("10.0.0.7", False), ("example.org", False)],
)  # fmt: skip
def test_only_a_loopback_address_may_be_open(host: str, loopback: bool) -> None:
    address = ConsoleAddress(host, 1)
    assert address.is_loopback is loopback
    check_exposure(address, insecure=True)
    if loopback:
        check_exposure(address, insecure=False)
    else:
        with pytest.raises(ConfigError, match=r"barnabas\.console\.insecure=true"):
            check_exposure(address, insecure=False)


def test_names_that_were_not_given_are_not_answered() -> None:
    hosts = Hosts(ConsoleAddress("kafka.example", 8080), ["Proxy.example"])
    for name in (
        "kafka.example",
        "KAFKA.example:8080",
        "proxy.example.",
        "10.1.1.1:1",
        "[fe80::1]",
    ):
        assert hosts.allows(name), name
    for name in ("example", "x.proxy.example", "proxy.example:", "proxy.example:80x", "", "a b"):
        assert not hosts.allows(name), name
