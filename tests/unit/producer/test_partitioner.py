"""Choosing partitions: short queues are likelier, and users may have their own way."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from barnabas.client.metadata import BrokerAddress, ClientMetadata, PartitionView, TopicView
from barnabas.kernels import murmur2
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import ConfigError
from barnabas.model.ids import ZERO_UUID
from barnabas.producer.partitioner import (
    Cluster,
    DefaultPartitioner,
    RoundRobinPartitioner,
    StickyChoice,
    partitioner_of,
)


def view(leaders: list[int]) -> ClientMetadata:
    """A topic `t` whose partitions have these leaders; brokers 1 to 3 exist."""
    cluster = ClientMetadata()
    cluster.brokers = {n: BrokerAddress(n, "h", n) for n in (1, 2, 3)}
    partitions = {
        index: PartitionView(index, leader, 0, (leader,), (leader,), (), ErrorCode.NONE)
        for index, leader in enumerate(leaders)
    }
    cluster.topics = {"t": TopicView("t", ZERO_UUID, False, partitions, ErrorCode.NONE)}
    return cluster


def choice(
    leaders: list[int], queued: list[int], slow: tuple[int, ...] = (), *, adaptive: bool = True
) -> Counter[int]:
    sticky = StickyChoice(
        view(leaders), Random(1), lambda _, index: queued[index], lambda: slow, adaptive=adaptive
    )
    return Counter(sticky.choose("t") for _ in range(4000))


def test_short_queues_are_likelier() -> None:
    """Weights are the longest queue plus one, minus the own one: 1, 4 and 2 of 7."""
    counts = choice([1, 2, 3], [3, 0, 2])
    assert abs(counts[0] / 4000 - 1 / 7) < 0.03
    assert abs(counts[1] / 4000 - 4 / 7) < 0.03
    assert abs(counts[2] / 4000 - 2 / 7) < 0.03


def test_without_adapting_all_are_alike() -> None:
    counts = choice([1, 2, 3], [9, 0, 0], adaptive=False)
    assert all(abs(count / 4000 - 1 / 3) < 0.03 for count in counts.values())


def test_partitions_without_a_leader_and_slow_leaders_are_avoided() -> None:
    assert set(choice([1, -1, 3], [0, 0, 0])) == {0, 2}
    assert set(choice([1, 2, 3], [0, 0, 0], (3,))) == {0, 1}
    assert set(choice([1, 1], [0, 0], (1,))) == {0, 1}
    assert set(choice([-1, -1], [0, 0])) == {0, 1}


def test_round_robin_takes_turns() -> None:
    robin = RoundRobinPartitioner()
    cluster = Cluster(view([1, -1, 3]))
    assert [robin.partition("t", b"k", b"k", None, None, cluster) for _ in range(5)] == [
        0,
        2,
        0,
        2,
        0,
    ]


def test_kafka_pythons_default_hashes_keys_and_throws_dice_else() -> None:
    cluster = Cluster(view([1, -1, 3]))
    default = DefaultPartitioner(Random(1))
    key = b"foobar"
    assert default.partition("t", key, key, None, None, cluster) == (murmur2(key) & 0x7FFFFFFF) % 3
    assert {default.partition("t", None, None, b"", b"", cluster) for _ in range(50)} == {0, 2}


def test_functions_and_objects_are_asked_in_their_own_ways() -> None:
    asked: list[Any] = []

    def function(key: Any, everything: Any, available: Any) -> int:
        asked.append((key, everything, available))
        return 2

    class Object:
        def partition(self, *arguments: Any) -> int:
            asked.append((*arguments[:5], sorted(arguments[5].partitions_for_topic("t"))))
            return 1

    cluster = view([1, -1, 3])
    by_function, by_object = partitioner_of(function, cluster), partitioner_of(Object, cluster)
    assert by_function is not None
    assert by_object is not None
    assert by_function("t", "key", b"key", "value", b"value") == 2
    assert by_object("t", "key", b"key", "value", b"value") == 1
    assert asked == [
        (b"key", [0, 1, 2], [0, 2]),
        ("t", "key", b"key", "value", b"value", [0, 1, 2]),
    ]


def test_names_are_known_and_others_refused() -> None:
    cluster = view([1])
    assert partitioner_of(None, cluster) is None
    assert partitioner_of("default", cluster) is None
    robin = partitioner_of("org.apache.kafka.clients.producer.RoundRobinPartitioner", cluster)
    assert robin is not None
    with pytest.raises(ConfigError, match="partitioner=nonsense: must be default"):
        partitioner_of("nonsense", cluster)
    with pytest.raises(ConfigError, match="must be a function or have partition"):
        partitioner_of(7, cluster)
