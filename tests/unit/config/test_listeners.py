"""Listeners: what is read, what is told to clients, and what is refused."""

from __future__ import annotations

import pytest

from barnabas.config.listeners import (
    Endpoint,
    SecurityProtocol,
    check_change,
    parse_endpoints,
    parse_listeners,
    parse_protocol_map,
)
from barnabas.model.errors import ConfigError

PLAINTEXT = SecurityProtocol.PLAINTEXT
MAP = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL,IN:PLAINTEXT,OUT:SASL_PLAINTEXT"


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("IN://localhost:9092", "localhost", 9092),
        ("IN://:9092", "", 9092),
        ("in://0.0.0.0:0", "0.0.0.0", 0),
        ("IN://[::1]:9092", "::1", 9092),
        (" IN://a-b.example.com:65535 ", "a-b.example.com", 65535),
    ],
)
def test_an_endpoint_is_read(text: str, host: str, port: int) -> None:
    (endpoint,) = parse_endpoints("listeners", text, parse_protocol_map(MAP))
    assert endpoint == Endpoint("IN", host, port, PLAINTEXT)


@pytest.mark.parametrize("text", ["IN://localhost:9092", "IN://:9092", "IN://[::1]:9092"])
def test_an_endpoint_is_shown_as_it_was_written(text: str) -> None:
    (endpoint,) = parse_endpoints("listeners", text, parse_protocol_map(MAP))
    assert str(endpoint) == text


def test_protocols_know_what_they_use() -> None:
    uses = {protocol.name: (protocol.uses_tls, protocol.uses_sasl) for protocol in SecurityProtocol}
    assert uses == {
        "PLAINTEXT": (False, False),
        "SSL": (True, False),
        "SASL_PLAINTEXT": (False, True),
        "SASL_SSL": (True, True),
    }


@pytest.mark.parametrize(
    ("listeners", "message"),
    [
        ("", "at least one listener"),
        ("localhost:9092", "must be NAME://host:port"),
        ("IN://localhost", "must be NAME://host:port"),
        ("IN://::1:9092", "must be NAME://host:port"),
        ("IN://localhost:65536", "port must be 0 to 65535"),
        ("IN://localhost:-1", "port must be 0 to 65535"),
        ("WHO://localhost:1", "no protocol for WHO"),
        ("IN://a:1,IN://a:2", "name IN is given twice"),
        ("IN://a:1,in://a:2", "name IN is given twice"),
        ("IN://a:1,SSL://b:1", "port is taken by IN://a:1"),
    ],
)
def test_wrong_listeners_are_refused(listeners: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        parse_listeners(listeners, None, MAP, inter_broker_name="IN")
    assert str(caught.value).startswith("listeners=")


def test_ports_may_repeat_when_the_system_chooses_them_and_across_address_families() -> None:
    chosen = parse_listeners("IN://:0,SSL://:0", None, MAP, inter_broker_name="IN")
    assert [endpoint.port for endpoint in chosen.bind] == [0, 0]
    families = parse_listeners(
        "IN://127.0.0.1:9092,SSL://[::1]:9092", None, MAP, inter_broker_name="IN"
    )
    assert [endpoint.port for endpoint in families.bind] == [9092, 9092]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("IN:TLS", "must be NAME:PROTOCOL"),
        ("IN", "must be NAME:PROTOCOL"),
        (":SSL", "must be NAME:PROTOCOL"),
        ("IN:SSL,in:PLAINTEXT", "IN is given twice"),
    ],
)
def test_a_wrong_protocol_map_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_protocol_map(text)


def test_without_advertised_listeners_clients_are_told_what_was_bound() -> None:
    listeners = parse_listeners(
        "IN://:0,SSL://10.0.0.5:9093,OUT://0.0.0.0:9094", None, MAP, inter_broker_name="IN"
    )
    told = listeners.advertise({"IN": 41000, "SSL": 9093, "OUT": 9094}, "broker-1")
    assert list(map(str, told)) == [
        "IN://broker-1:41000",
        "SSL://10.0.0.5:9093",
        "OUT://broker-1:9094",
    ]


def test_advertised_listeners_are_told_as_they_are() -> None:
    listeners = parse_listeners(
        "IN://:9092,SSL://:9093", "IN://outside.example:19092", MAP, inter_broker_name="IN"
    )
    told = listeners.advertise({"IN": 9092, "SSL": 9093}, "broker-1")
    assert list(map(str, told)) == ["IN://outside.example:19092"]


@pytest.mark.parametrize(
    ("advertised", "message"),
    [
        ("IN://0.0.0.0:9092", "clients cannot connect to 0.0.0.0"),
        ("IN://[::]:9092", "clients cannot connect to ::"),
        ("SSL://a:9093", "SSL is not among listeners"),
    ],
)
def test_wrong_advertised_listeners_are_refused(advertised: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_listeners("IN://:9092", advertised, MAP, inter_broker_name="IN")


def test_brokers_use_the_named_listener_or_the_one_of_their_protocol() -> None:
    both = "IN://:1,SSL://:2"
    assert parse_listeners(both, None, MAP, inter_broker_name="in").inter_broker == "IN"
    assert parse_listeners(both, None, MAP, inter_broker_protocol="SSL").inter_broker == "SSL"
    assert parse_listeners("PLAINTEXT://:1", None, MAP).inter_broker == "PLAINTEXT"
    with pytest.raises(ConfigError, match=r"set inter\.broker\.listener\.name"):
        parse_listeners(both, None, MAP)
    with pytest.raises(ConfigError, match="only one of them"):
        parse_listeners(both, None, MAP, inter_broker_name="IN", inter_broker_protocol="SSL")


def test_the_control_plane_has_a_listener_of_its_own() -> None:
    both = "IN://:1,SSL://:2"
    named = parse_listeners(both, None, MAP, inter_broker_name="IN", control_plane_name="ssl")
    assert named.control_plane == "SSL"
    with pytest.raises(ConfigError, match="must differ from the inter-broker listener"):
        parse_listeners(both, None, MAP, inter_broker_name="IN", control_plane_name="IN")
    with pytest.raises(ConfigError, match=r"name=OUT: not among listeners \(IN://:1,SSL://:2\)"):
        parse_listeners(both, None, MAP, inter_broker_name="IN", control_plane_name="OUT")
    with pytest.raises(ConfigError, match=r"name=none: not in listener\.security\.protocol\.map"):
        parse_listeners(both, None, MAP, inter_broker_name="IN", control_plane_name="none")
    with pytest.raises(
        ConfigError, match=r"name=SSL: not among advertised\.listeners \(IN://h:1\)"
    ):
        parse_listeners(both, "IN://h:1", MAP, inter_broker_name="IN", control_plane_name="SSL")


def test_an_open_listener_keeps_its_protocol() -> None:
    before, after = (
        parse_listeners("IN://:1", None, f"IN:{protocol}", inter_broker_name="IN")
        for protocol in ("SSL", "PLAINTEXT")
    )
    check_change(after, after)
    with pytest.raises(
        ConfigError, match=r"map=IN:PLAINTEXT: the listener is open as SSL; add one"
    ):
        check_change(before, after)
    with pytest.raises(ConfigError, match=r"map=IN:SSL: the listener is open as PLAINTEXT"):
        check_change(after, before)
