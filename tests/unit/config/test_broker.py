"""A broker's options together: each has a status and a sentence, and they must agree."""

from __future__ import annotations

import re
import typing
from typing import Any

import pytest

from barnabas.config.broker import BrokerOptions
from barnabas.config.broker.network import parse_connection_overrides
from barnabas.config.option import Kind, Option, Password, Section
from barnabas.config.topic import TopicOptions
from barnabas.model.errors import ConfigError

ALL = [*BrokerOptions.options.values(), *TopicOptions.options.values()]
PYTHON = {
    Kind.BOOLEAN: bool,
    Kind.STRING: str,
    Kind.INT: int,
    Kind.SHORT: int,
    Kind.LONG: int,
    Kind.DOUBLE: float,
    Kind.LIST: tuple[str, ...],
    Kind.CLASS: str,
    Kind.PASSWORD: Password,
}
SAMPLES = {
    Kind.BOOLEAN: lambda option: not option.default,
    Kind.LIST: lambda option: (
        [*option.default, *(option.choices or ("other",))[-1:]]
        if option.default is not None
        else ["other"]
    ),
    Kind.PASSWORD: lambda option: "other",
}


def _another_value(option: Option) -> object:
    """A valid value that is not the default."""
    if option.kind in SAMPLES:
        return SAMPLES[option.kind](option)
    if option.choices:
        return next(choice for choice in option.choices if choice != option.default)
    if option.kind in (Kind.STRING, Kind.CLASS):
        return "other"
    candidates = [option.at_least or 0, (option.default or 0) - 1, (option.default or 0) + 1]
    for candidate in candidates:
        value = float(candidate) if option.kind is Kind.DOUBLE else int(candidate)
        low = option.at_least is None or value >= option.at_least
        if low and (option.at_most is None or value <= option.at_most) and value != option.default:
            return value
    raise AssertionError(option.name)


@pytest.mark.parametrize("option", ALL, ids=lambda option: option.name)
def test_every_option_acts_or_warns_or_is_refused_by_name(option: Option) -> None:
    """An option that does nothing must say so when it is set."""
    value = _another_value(option)
    section: type[Section] = (
        BrokerOptions if option is BrokerOptions.options.get(option.name) else TopicOptions
    )
    if option.status == "refused":
        with pytest.raises(ConfigError, match=option.name):
            section.parse({option.name: value})
        return
    assert option.parse(value) != option.default
    if option.status == "reserved":
        # Parsed alone, so that no rule between options stands in the way.
        alone: Any = type("Alone", (Section,), {option.attribute: option})
        assert alone.parse({option.name: value}).warnings() == [
            f"{option.name} is set, but has no effect: {option.reserved}"
        ]


@pytest.mark.parametrize("option", ALL, ids=lambda option: option.name)
def test_every_default_is_valid_and_every_doc_a_sentence(option: Option) -> None:
    if option.default is not None:
        assert option.parse(option.default) == option.default
        shown = option.text(option.default)
        assert option.parse(shown) == option.default
    assert option.doc.endswith(".")
    assert option.doc[0].isupper()
    assert not option.reserved.endswith(".")


@pytest.mark.parametrize("section", [BrokerOptions, TopicOptions])
def test_annotations_say_what_parsing_returns(section: type[Section]) -> None:
    hints = typing.get_type_hints(section)
    for option in section.options.values():
        if option.attribute not in hints:  # a row of a table, which nothing reads
            assert option.status == "reserved", option.name
            continue
        python: object = PYTHON[option.kind]
        expected = typing.Optional[python] if option.default is None else python  # noqa: UP045
        assert hints[option.attribute] == expected, option.name


def test_no_option_is_declared_twice() -> None:
    sections = [
        section
        for section in BrokerOptions.__mro__[1:]
        if section is not Section and issubclass(section, Section)
    ]
    assert len(sections) == 17
    assert sum(len(section.options) for section in sections) == len(BrokerOptions.options)


def test_defaults_give_a_usable_broker_without_warnings() -> None:
    options = BrokerOptions.parse({})
    assert options.warnings() == []
    assert options.log_directories == ("/tmp/kafka-logs",)
    assert str(options.endpoints.bind[0]) == "PLAINTEXT://:9092"


def test_log_dirs_wins_over_log_dir() -> None:
    options = BrokerOptions.parse({"log.dir": "/one", "log.dirs": "/a, /b"})
    assert options.log_directories == ("/a", "/b")
    assert BrokerOptions.parse({"log.dir": "/one"}).log_directories == ("/one",)
    with pytest.raises(ConfigError, match="at least one directory"):
        BrokerOptions.parse({"log.dirs": " , "})


@pytest.mark.parametrize("name", ["broker.id", "node.id"])
def test_broker_id_and_node_id_are_one(name: str) -> None:
    options = BrokerOptions.parse({name: "7"})
    assert (options.broker_id, options.node_id) == (7, 7)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"broker.id": "1", "node.id": "2"}, r"node.id=2: must equal broker.id \(1\)"),
        ({"broker.id": "1001"}, r"at most reserved.broker.max.id \(1000\)"),
        ({"broker.id.generation.enable": "false"}, "broker.id=-1: must be at least 0"),
        ({"process.roles": "broker"}, "process.roles=broker: refused: belongs to KRaft"),
        ({"replica.fetch.wait.max.ms": "30001"}, "at most replica.lag.time.max.ms"),
        ({"log.cleaner.max.compaction.lag.ms": "5", "log.cleaner.min.compaction.lag.ms": "6"}, "6"),
        ({"advertised.listeners": "OTHER://a:1"}, "advertised.listeners"),
        ({"listener.name.x.ssl.client.auth": "maybe"}, "ssl.client.auth=maybe"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    values: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        BrokerOptions.parse(values)


def test_high_ids_are_free_when_none_are_generated() -> None:
    values = {"broker.id": "5000", "broker.id.generation.enable": "false"}
    assert BrokerOptions.parse(values).broker_id == 5000


def test_a_listener_and_a_mechanism_have_options_of_their_own() -> None:
    options = BrokerOptions.parse(
        {
            "ssl.client.auth": "none",
            "sasl.jaas.config": "general",
            "max.connections": "50",
            "listener.name.outside.ssl.client.auth": "required",
            "listener.name.outside.max.connections": "5",
            "listener.name.outside.sasl.jaas.config": "listener.Login required;",
            "listener.name.outside.scram-sha-256.sasl.jaas.config": "mechanism.Login required;",
        }
    )
    assert options.unknown == {}
    assert options.ssl_client_auth == "none"
    outside = options.for_listener("OUTSIDE")
    assert (outside.ssl_client_auth, outside.max_connections) == ("required", 5)
    assert outside.value("sasl.jaas.config") == Password("listener.Login required;")
    lines = [line.partition(" ")[0] for line in options.warnings() if "jaas" in line]
    assert lines == ["sasl.jaas.config", "listener.name.outside.sasl.jaas.config"]
    scram = options.for_listener("OUTSIDE", "SCRAM-SHA-256")
    assert scram.value("sasl.jaas.config") == Password("mechanism.Login required;")
    assert options.for_listener("INSIDE") is options


@pytest.mark.parametrize(
    "name",
    [
        "listener.name.outside.log.segment.bytes",
        "listener.name.outside.plain.ssl.client.auth",
        "listener.name.outside.ssl.nothing",
        "listener.name.outside",
    ],
)
def test_what_no_listener_can_have_is_unknown(name: str) -> None:
    assert BrokerOptions.parse({name: "1"}).unknown == {name: "1"}


def test_connections_of_single_hosts() -> None:
    """host:limit, IPv6 addresses in brackets or not; a mistake is found with all others."""
    assert parse_connection_overrides("") == {}
    given = parse_connection_overrides(" 10.0.0.1:5, [::1]:7 ,fe80::1:9")
    assert given == {"10.0.0.1": 5, "::1": 7, "fe80::1": 9}
    name = "max.connections.per.ip.overrides"
    for bad in ("10.0.0.1", ":5", "10.0.0.1:", "10.0.0.1:many", "10.0.0.1:-1"):
        with pytest.raises(ConfigError, match=rf"{name}=.*{re.escape(bad)}"):
            BrokerOptions.parse({name: bad})
