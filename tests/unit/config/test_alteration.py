"""Changes of options: what they give, and the codes with which they are refused."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.config.alteration import (
    Change,
    Operation,
    alter_broker,
    alter_cluster,
    alter_topic,
    replace_broker,
    replace_cluster,
    replace_topic,
)
from barnabas.config.broker import BrokerOptions
from barnabas.config.sources import BrokerSources
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError

BROKER = BrokerOptions.parse({})
SET, DELETE, APPEND, SUBTRACT = Operation


def test_set_and_delete_leave_the_other_overrides_alone() -> None:
    current = {"retention.ms": "5", "segment.bytes": "100"}
    changes = [Change("retention.ms", SET, "6"), Change("segment.bytes", DELETE)]
    assert alter_topic(current, changes, BROKER) == {"retention.ms": "6"}
    assert current == {"retention.ms": "5", "segment.bytes": "100"}


def test_deleting_what_is_not_set_changes_nothing() -> None:
    assert alter_topic({}, [Change("retention.ms", DELETE)], BROKER) == {}


@pytest.mark.parametrize(
    ("current", "operation", "value", "after"),
    [
        ({}, APPEND, "compact", "delete,compact"),  # from the default
        ({"cleanup.policy": "compact"}, APPEND, "delete", "compact,delete"),
        ({"cleanup.policy": "compact"}, APPEND, "compact", "compact"),
        ({"cleanup.policy": "compact,delete"}, SUBTRACT, "delete", "compact"),
        ({"cleanup.policy": "compact,delete"}, SUBTRACT, "delete, compact", ""),
        ({"cleanup.policy": "compact"}, SUBTRACT, "delete", "compact"),
    ],
)
def test_lists_are_appended_to_and_subtracted_from(
    current: dict[str, str], operation: Operation, value: str, after: str
) -> None:
    changed = alter_topic(current, [Change("cleanup.policy", operation, value)], BROKER)
    assert changed == {"cleanup.policy": after}


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (Change("retention.ms", SET, "x"), ErrorCode.INVALID_CONFIG, "must be a whole number"),
        (Change("retention.ms", SET, None), ErrorCode.INVALID_REQUEST, "a value is required"),
        (Change("retention.ms", APPEND, "5"), ErrorCode.INVALID_CONFIG, "only lists"),
        (Change("retention.ms", 9, "5"), ErrorCode.INVALID_REQUEST, "unknown operation 9"),
        (Change("nonsense", SET, "5"), ErrorCode.INVALID_CONFIG, "no such topic option"),
        (Change("nonsense", APPEND, "5"), ErrorCode.INVALID_CONFIG, "no such option"),
        (Change("cleanup.policy", APPEND, "shrink"), ErrorCode.INVALID_CONFIG, "shrink"),
    ],
)
def test_a_wrong_change_of_a_topic_is_refused(
    change: Change, code: ErrorCode, message: str
) -> None:
    with pytest.raises(RequestError, match=message) as caught:
        alter_topic({}, [change], BROKER)
    assert caught.value.code is code


def test_one_option_cannot_be_changed_twice_at_once() -> None:
    changes = [Change("retention.ms", SET, "5"), Change("retention.ms", DELETE)]
    with pytest.raises(RequestError, match="twice") as caught:
        alter_topic({}, changes, BROKER)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_replacing_forgets_what_is_not_named() -> None:
    assert replace_topic({"segment.bytes": " 100 "}, BROKER) == {"segment.bytes": "100"}
    with pytest.raises(RequestError, match="a value is required") as caught:
        replace_topic({"segment.bytes": None}, BROKER)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_a_broker_changes_its_own_values() -> None:
    sources = BrokerSources({}, {}, {"log.segment.bytes": "100"})
    changes = [Change("log.retention.ms", SET, "5"), Change("ssl.client.auth", SET, "required")]
    assert alter_broker(sources, changes) == {
        "log.segment.bytes": "100",
        "log.retention.ms": "5",
        "ssl.client.auth": "required",
    }
    listener = {"listener.name.outside.ssl.keystore.location": "/new.pem"}
    assert replace_broker(sources, listener) == listener


def test_the_cluster_changes_what_all_brokers_may_share() -> None:
    sources = BrokerSources({}, {"log.segment.bytes": "100"})
    changes = [Change("log.segment.bytes", DELETE), Change("log.retention.ms", SET, "5")]
    assert alter_cluster(sources, changes) == {"log.retention.ms": "5"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"broker.id": "5"}, "cannot be changed while"),
        ({"nonsense": "5"}, "no such option"),
        ({"log.segment.bytes": "1"}, "at least 14"),
    ],
)
def test_wrong_values_of_brokers_and_clusters_are_refused(
    values: dict[str, str | None], message: str
) -> None:
    for replace in (replace_broker, replace_cluster):
        with pytest.raises(RequestError, match=message) as caught:
            replace(BrokerSources({}), values)
        assert caught.value.code is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    "name", ["listeners", "ssl.keystore.location", "listener.name.outside.max.connections"]
)
def test_what_belongs_to_one_broker_cannot_be_set_for_the_cluster(name: str) -> None:
    with pytest.raises(RequestError, match="only be changed per broker"):
        replace_cluster(BrokerSources({}), {name: "5"})


@pytest.mark.parametrize("replace", [replace_broker, replace_cluster])
def test_threads_are_changed_for_one_broker_or_all(replace: Any) -> None:
    assert replace(BrokerSources({}), {"num.io.threads": "16"}) == {"num.io.threads": "16"}
    with pytest.raises(RequestError, match=r"num\.io\.threads=0: must be at least 1"):
        replace(BrokerSources({}), {"num.io.threads": "0"})


IN = BrokerSources(
    {
        "listeners": "IN://:9092",
        "listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT,S:SSL",
        "inter.broker.listener.name": "IN",
    }
)


@pytest.mark.parametrize(
    "values",
    [
        {"listeners": "IN://:9092,OUT://:9093"},
        {"listeners": "IN://127.0.0.1:9095"},
        {"advertised.listeners": "IN://outside.example:1"},
        {
            "listeners": "IN://:1,NEW://:2",
            "listener.security.protocol.map": "IN:PLAINTEXT,NEW:PLAINTEXT",
        },
    ],
)
def test_listeners_are_changed_for_one_broker(values: dict[str, str | None]) -> None:
    assert replace_broker(IN, values) == values


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"listeners": "OUT://:9093"}, r"inter\.broker\.listener\.name=IN: no advertised listener"),
        (
            {"listeners": "IN://:1,S://:2", "listener.security.protocol.map": "IN:SSL,S:SSL"},
            r"map=IN:SSL: the listener is open as PLAINTEXT; add one",
        ),
        ({"listeners": "IN://:1,NONE://:2"}, r"listener\.security\.protocol\.map has no protocol"),
        ({"listeners": "IN://:1,OUT://:1"}, r"listeners=OUT://:1: the port is taken by IN://:1"),
        ({"advertised.listeners": "IN://0.0.0.0:1"}, r"clients cannot connect to 0\.0\.0\.0"),
        ({"advertised.listeners": "OUT://h:1"}, r"OUT is not among listeners"),
        (
            {"listener.security.protocol.map": "IN:SASL_PLAINTEXT"},
            r"the listener is open as PLAINTEXT",
        ),
    ],
)
def test_listeners_that_a_broker_cannot_go_over_to_are_refused(
    values: dict[str, str | None], message: str
) -> None:
    with pytest.raises(RequestError, match=message) as caught:
        replace_broker(IN, values)
    assert caught.value.code is ErrorCode.INVALID_CONFIG
