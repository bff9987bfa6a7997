"""Throttles are set where a move copies, and only those that are there are removed."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.admin.config_entries import (
    AlterConfigOp,
    Change,
    ConfigEntry,
    ConfigResourceType,
    ConfigSource,
    Resource,
)
from barnabas.admin.moves import throttles
from barnabas.admin.moves.plan import Move
from barnabas.admin.moves.throttles import (
    DIRECTORY_RATE,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    clear_throttles,
    set_throttle,
)
from barnabas.model.ids import TopicPartition

TOPIC = Resource(ConfigResourceType.TOPIC, "t")
BROKERS = {number: Resource(ConfigResourceType.BROKER, str(number)) for number in (1, 2, 3)}


class FakeOptions:
    """The options of a cluster with brokers 1 to 3, in place of requests."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.client: Any = SimpleNamespace(cluster=SimpleNamespace(brokers=dict(BROKERS)))
        self.present: dict[Resource, dict[str, ConfigSource]] = {}
        self.changed: dict[Resource, list[Change]] = {}
        monkeypatch.setattr(throttles, "alter_configs", self._alter)
        monkeypatch.setattr(throttles, "describe_configs", self._describe)

    async def _alter(self, client: Any, resource: Resource, changes: list[Change]) -> None:
        assert resource not in self.changed, "one request for each"
        self.changed[resource] = changes

    async def _describe(self, client: Any, resource: Resource, names: Any) -> list[ConfigEntry]:
        return [
            ConfigEntry(name, "1", source, False, False, (), None)
            for name, source in self.present.get(resource, {}).items()
            if name in names
        ]


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> FakeOptions:
    return FakeOptions(monkeypatch)


def test_a_throttle_names_the_replicas_and_the_brokers_alive(options: FakeOptions) -> None:
    moves = [Move(TopicPartition("t", 0), (1,), (1, 2, 9), 1, 5)]
    asyncio.run(set_throttle(options.client, moves, 1_000))
    rates = [
        Change(AlterConfigOp.SET, LEADER_RATE, "1000"),
        Change(AlterConfigOp.SET, FOLLOWER_RATE, "1000"),
    ]
    assert options.changed == {
        TOPIC: [
            Change(AlterConfigOp.SET, LEADER_REPLICAS, "0:1"),
            Change(AlterConfigOp.SET, FOLLOWER_REPLICAS, "0:2,0:9"),
        ],
        BROKERS[1]: rates,
        BROKERS[2]: rates,
    }


def test_what_copies_nothing_has_no_throttled_replicas(options: FakeOptions) -> None:
    moves = [Move(TopicPartition("t", 0), (1, 2), (2, 1), 1, 5)]
    asyncio.run(set_throttle(options.client, moves, 1_000))
    assert TOPIC not in options.changed


def test_only_own_throttles_are_removed(options: FakeOptions) -> None:
    """Defaults and rates from a broker's file stay; so do options of other kinds."""
    options.present = {
        TOPIC: {LEADER_REPLICAS: ConfigSource.TOPIC, "retention.ms": ConfigSource.TOPIC},
        BROKERS[1]: {LEADER_RATE: ConfigSource.BROKER, DIRECTORY_RATE: ConfigSource.BROKER},
        BROKERS[2]: {LEADER_RATE: ConfigSource.FILE, FOLLOWER_RATE: ConfigSource.DEFAULT},
    }
    assert asyncio.run(clear_throttles(options.client, ["t", "t"])) is True
    assert options.changed == {
        TOPIC: [Change(AlterConfigOp.DELETE, LEADER_REPLICAS)],
        BROKERS[1]: [
            Change(AlterConfigOp.DELETE, LEADER_RATE),
            Change(AlterConfigOp.DELETE, DIRECTORY_RATE),
        ],
    }


def test_nothing_to_remove_is_told(options: FakeOptions) -> None:
    assert asyncio.run(clear_throttles(options.client, ["t"])) is False
    assert options.changed == {}
