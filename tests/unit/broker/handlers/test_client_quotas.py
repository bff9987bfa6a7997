"""AlterClientQuotas and DescribeClientQuotas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.unit.broker.serving import Serving, Wire

from barnabas.broker.handlers import served_apis
from barnabas.broker.handlers.broker_traffic import BROKER_KEYS
from barnabas.broker.network.router import Served
from barnabas.metadata.tree_schema import decode_config
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.codec import decode, encode
from barnabas.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from barnabas.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)

EXACT, DEFAULT, ANY = 0, 1, 2
Entity = Mapping[str, str | None] | list[tuple[str, str | None]]


@pytest.fixture
def serving(tmp_path: Any) -> Iterator[Serving]:
    with Serving(tmp_path) as running:
        yield running


def entry(entity: Entity, ops: Mapping[str, float | None] | list[tuple[str, float]]) -> EntryData:
    parts = entity.items() if isinstance(entity, Mapping) else entity
    changes = ops.items() if isinstance(ops, Mapping) else ops
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in parts],
        ops=[OpData(key=k, value=v or 0.0, remove=v is None) for k, v in changes],
    )


def alter(wire: Wire, *entries: EntryData, validate_only: bool = False) -> list[int]:
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    return [each.error_code for each in wire.ask(request).entries]


def describe(
    wire: Wire, *components: tuple[str, int, str | None], strict: bool = False
) -> dict[tuple[tuple[str, str | None], ...], dict[str, float]]:
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=kind, match_type=match, match=name)
            for kind, match, name in components
        ],
        strict=strict,
    )
    response = wire.ask(request)
    assert response.error_code == 0, response
    return {
        tuple((part.entity_type, part.entity_name) for part in each.entity): {
            value.key: value.value for value in each.values
        }
        for each in response.entries
    }


RATE = {"producer_byte_rate": 1000.0}


def test_entities_are_found_by_every_filter(wire: Wire) -> None:
    """Exact, default and any, strict and not."""
    entities: list[dict[str, str | None]] = [
        {"user": "ada"},
        {"user": None},
        {"client-id": "web"},
        {"client-id": None},
        {"user": "ada", "client-id": "web"},
        {"user": "ada", "client-id": None},
        {"user": None, "client-id": None},
    ]
    assert alter(wire, *(entry(each, RATE) for each in entities)) == [0] * 7
    assert alter(wire, entry({"ip": "127.0.0.1"}, {"connection_creation_rate": 5.0})) == [0]
    found = describe(wire)
    assert set(found) == {tuple(each.items()) for each in entities} | {(("ip", "127.0.0.1"),)}
    assert found.pop((("ip", "127.0.0.1"),)) == {"connection_creation_rate": 5.0}
    assert all(values == RATE for values in found.values())

    def names(*components: tuple[str, int, str | None], strict: bool = False) -> list[Any]:
        return [dict(each) for each in describe(wire, *components, strict=strict)]

    ada = ("user", EXACT, "ada")
    assert names(ada) == [entities[0], entities[5], entities[4]]
    assert names(ada, strict=True) == [entities[0]]
    assert names(("user", DEFAULT, None)) == [entities[1], entities[6]]
    assert names(("user", ANY, None), strict=True) == [entities[1], entities[0]]
    assert names(ada, ("client-id", ANY, None)) == [entities[5], entities[4]]
    assert names(ada, ("client-id", EXACT, "web"), strict=True) == [entities[4]]
    assert names(("client-id", EXACT, "web")) == [entities[2], entities[4]]
    assert names(("ip", ANY, None)) == [{"ip": "127.0.0.1"}]
    assert names(("user", EXACT, "bob")) == []
    assert names(strict=True) == []


SCRAM = (
    "salt=W22ZaJ0SNY7soEsUEjb6gQ==,stored_key=WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=,"
    "server_key=wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=,iterations=4096"
)


def test_values_are_stored_as_kafka_stores_them(serving: Serving, wire: Wire) -> None:
    """Beside what else the user has; a removed one is gone, and so is an entity without any."""
    import asyncio

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, serving.broker.loop).result(60)

    run(serving.broker.parts.config_store.set("users", "ada/1", {"SCRAM-SHA-256": SCRAM}))
    every = {
        "producer_byte_rate": 1000.0,
        "consumer_byte_rate": 2e9,
        "request_percentage": 12.5,
        "controller_mutation_rate": 3.0,
    }
    assert alter(wire, entry({"user": "ada/1"}, every)) == [0]
    path = "/config/users/ada%2F1"
    assert decode_config(path, run(serving.broker.tree.get(path))[0]) == {
        "SCRAM-SHA-256": SCRAM,
        "producer_byte_rate": "1000",
        "consumer_byte_rate": "2000000000",
        "request_percentage": "12.5",
        "controller_mutation_rate": "3.0",
    }
    assert describe(wire, ("user", EXACT, "ada/1")) == {(("user", "ada/1"),): every}
    assert alter(wire, entry({"user": "ada/1"}, dict.fromkeys(every))) == [0]
    assert describe(wire) == {}
    assert decode_config(path, run(serving.broker.tree.get(path))[0]) == {"SCRAM-SHA-256": SCRAM}


@pytest.mark.parametrize(
    ("entity", "ops"),
    [
        ({}, RATE),
        ({"planet": "mars"}, RATE),
        ([("user", "a"), ("user", "b")], RATE),
        ({"user": ""}, RATE),
        ({"client-id": "<default>"}, RATE),
        ({"client-id": ".."}, RATE),
        ({"ip": "127.0.0.1", "user": "ada"}, RATE),
        ({"ip": "not an address"}, {"connection_creation_rate": 1.0}),
        ({"ip": "127.0.0.1"}, RATE),
        ({"user": "ada"}, {"connection_creation_rate": 1.0}),
        ({"user": "ada"}, {"retention.ms": 1.0}),
        ({"user": "ada"}, {"producer_byte_rate": 1.5}),
        ({"user": "ada"}, {"producer_byte_rate": -1.0}),
        ({"user": "ada"}, {"request_percentage": float("nan")}),
        ({"user": "ada"}, {"request_percentage": float("inf")}),
        ({"user": "ada"}, [("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)]),
    ],
)
def test_what_is_wrong_is_rejected_alone(wire: Wire, entity: Any, ops: Any) -> None:
    """The other entries of the request are done."""
    invalid = ErrorCode.INVALID_REQUEST
    assert alter(wire, entry({"user": "good"}, RATE), entry(entity, ops)) == [0, invalid]
    assert list(describe(wire)) == [(("user", "good"),)]


def test_a_zero_is_no_quota(wire: Wire) -> None:
    """Kafka's KRaft rejects it too: it would never let anything pass."""
    op = OpData(key="producer_byte_rate", value=0.0, remove=False)
    zero = EntryData(entity=[EntityData(entity_type="user", entity_name="ada")], ops=[op])
    assert alter(wire, zero) == [ErrorCode.INVALID_REQUEST]


def test_validation_alone_changes_nothing(wire: Wire) -> None:
    assert alter(wire, entry({"user": "ada"}, RATE), validate_only=True) == [0]
    assert describe(wire) == {}


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("user", ANY, None), ("user", EXACT, "a")], ErrorCode.INVALID_REQUEST),
        ([("ip", ANY, None), ("user", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 7, None)], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("planet", ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_filters_that_cannot_be(wire: Wire, components: Any, code: ErrorCode) -> None:
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=kind, match_type=match, match=name)
            for kind, match, name in components
        ]
    )
    response = wire.ask(request)
    assert (response.error_code, response.entries) == (code, None)


@pytest.mark.parametrize(
    "served", list(served_apis(alone=False).values()), ids=lambda served: served.api.name
)
def test_the_throttle_time_fits_every_version(served: Served) -> None:
    """A version that has no room for it is throttled all the same, and not told."""
    reported = set()
    for version in range(served.first_version, served.last_version + 1):
        response: Any = served.api.response()
        if hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = 77
        sent: Any
        sent, _ = decode(served.api.response, encode(response, version), version)
        reported.add(getattr(sent, "throttle_time_ms", 0))
    unaware = served.api.key in BROKER_KEYS or served.api.name in (
        "SaslHandshake",
        "SaslAuthenticate",
    )
    assert 77 in reported or unaware


def test_usage_is_what_this_broker_measures(wire: Wire) -> None:
    """Rates beside their limits; unlimited ones have none."""
    assert alter(wire, entry({"client-id": "test"}, {"request_percentage": 50.0})) == [0]
    describe(wire)
    (usage,) = describe(wire, ("barnabas.usage", ANY, None)).items()
    entity, values = usage
    assert entity == (("client-id", "test"),)
    assert values["request_percentage.limit"] == 50
    assert values["request_percentage.throttle_time_ms"] == 0
    assert 0 < values["request_percentage"] < 50
