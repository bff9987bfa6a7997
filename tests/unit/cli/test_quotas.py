"""`barnabas quotas`."""

from __future__ import annotations

import json
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _clean(barnabas: Any) -> Any:
    yield
    for entry in json.loads(barnabas("quotas", "list", "--json").out):
        words = []
        for kind, name in entry["entity"].items():
            words += [f"--default-{kind}"] if name is None else [f"--{kind}", name]
        assert barnabas("quotas", "remove", *words).code == 0


def test_quotas_are_set_shown_and_removed(barnabas: Any) -> None:
    """Of users, client ids, pairs, addresses, and of the defaults."""
    run = barnabas("quotas", "set", "--user", "ada", "producer_byte_rate=1000", "--json")
    assert (run.code, json.loads(run.out)) == (0, {"entity": {"user": "ada"}, "result": "set"})
    run = barnabas("quotas", "set", "--default-user", "--client-id", "web", "request_percentage=.5")
    assert run.out == "quotas of user <default> client-id web set\n"
    run = barnabas("quotas", "set", "--ip", "127.0.0.7", "connection_creation_rate=5")
    assert run.code == 0
    assert barnabas("quotas", "list").out.splitlines() == [
        "entity                        quota                     limit",
        "ip 127.0.0.7                  connection_creation_rate  5",
        "user <default> client-id web  request_percentage        0.5",
        "user ada                      producer_byte_rate        1000",
    ]
    assert json.loads(barnabas("quotas", "list", "--user", "ada", "--json").out) == [
        {"entity": {"user": "ada"}, "quotas": {"producer_byte_rate": 1000.0}}
    ]
    barnabas("quotas", "set", "--user", "ada", "consumer_byte_rate=7")
    run = barnabas("quotas", "remove", "--user", "ada", "producer_byte_rate")
    assert run.out == "quotas of user ada removed\n"
    assert json.loads(barnabas("quotas", "list", "--user", "ada", "--json").out) == [
        {"entity": {"user": "ada"}, "quotas": {"consumer_byte_rate": 7.0}}
    ]
    barnabas("quotas", "remove", "--user", "ada")
    assert json.loads(barnabas("quotas", "list", "--user", "ada", "--json").out) == []


def test_usage_has_what_clients_do(barnabas: Any) -> None:
    """The command itself is a client, with an id of its own."""
    barnabas("quotas", "set", "--client-id", "barnabas-cli", "request_percentage=90")
    barnabas("quotas", "list")
    (usage,) = [
        each
        for each in json.loads(barnabas("quotas", "show-usage", "--json").out)
        if each["entity"] == {"client-id": "barnabas-cli"}
    ]
    assert (usage["quota"], usage["limit"], usage["throttle_time_ms"]) == (
        "request_percentage",
        90,
        0,
    )
    assert 0 < usage["rate"] < 90
    lines = barnabas("quotas", "show-usage").out.splitlines()
    assert lines[0].split() == ["broker", "entity", "quota", "rate", "limit", "used", "throttled"]
    assert any("client-id barnabas-cli" in line for line in lines)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["set", "producer_byte_rate=1"], 1, "whose quotas?"),
        (["set", "--user", "ada", "producer_byte_rate"], 2, "name=value"),
        (["set", "--user", "ada", "producer_byte_rate=much"], 2, "must be a number"),
        (["set", "--user", "ada", "producer_byte_rate=-1"], 1, "must be above 0"),
        (["set", "--user", "ada", "retention.ms=1"], 1, "must be producer_byte_rate or"),
        (["set", "--user", "ada", "--ip", "1.1.1.1", "producer_byte_rate=1"], 1, "INVALID_REQUEST"),
        (["show-usage", "--broker", "77"], 1, ""),
    ],
)
def test_what_is_wrong_is_named(barnabas: Any, words: list[str], code: int, text: str) -> None:
    run = barnabas("quotas", *words, *(["--timeout", "1"] if "--broker" in words else []))
    assert run.code == code
    assert text in run.err
