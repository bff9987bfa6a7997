"""Which strategies an option names, and assignors that were written for other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from barnabas.assignment.contract import Decision, Member, PartitionCounts, Share
from barnabas.assignment.range import RangeAssignor
from barnabas.client.metadata import ClientMetadata
from barnabas.consumer.group.assignors import is_cooperative, partition_counts, strategies
from barnabas.model.errors import ConfigError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def cluster(**counts: int) -> ClientMetadata:
    view = ClientMetadata()
    view.apply(
        MetadataResponse(
            brokers=[],
            topics=[
                MetadataResponseTopic(
                    name=name,
                    partitions=[
                        MetadataResponsePartition(partition_index=number, leader_id=1)
                        for number in range(count)
                    ],
                )
                for name, count in counts.items()
            ],
        )
    )
    return view


def never(count: int) -> int:
    raise AssertionError("no chance is needed")


MEMBERS = [Member("m1", ["t"]), Member("m2", ["t"])]


def test_names_come_in_the_order_of_preference() -> None:
    """As a list, a text with commas, or the names of Java's classes."""
    assert list(strategies(["sticky", "range"], never)) == ["sticky", "range"]
    assert list(strategies("range, roundrobin", never)) == ["range", "roundrobin"]
    java = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    assert list(strategies([java], never)) == ["cooperative-sticky"]
    assert list(strategies(RangeAssignor, never)) == ["range"]
    assert list(strategies([RangeAssignor()], never)) == ["range"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "empty"),
        ("nearest", "range, roundrobin, sticky"),
        (["range", RangeAssignor], "twice"),
        ([object], "is not an assignor"),
    ],
)
def test_what_is_no_assignor_is_refused(given: object, told: str) -> None:
    """The message names the option and what there is."""
    with pytest.raises(ConfigError, match=told) as failure:
        strategies(given, never)
    assert "partition.assignment.strategy" in str(failure.value)


def test_a_consumer_is_cooperative_only_if_all_its_strategies_are() -> None:
    """A rolling upgrade lists both kinds, and goes on eagerly until the last step."""
    assert is_cooperative(strategies(["cooperative-sticky"], never))
    assert not is_cooperative(strategies(["cooperative-sticky", "range"], never))


def test_topics_that_do_not_exist_have_no_partitions() -> None:
    """Nobody is assigned partitions of them."""
    assert partition_counts(cluster(t=3), ["t", "u"]) == {"t": 3}


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky", "cooperative-sticky", "random"])
def test_every_strategy_deals_all_partitions(name: str) -> None:
    """Each to one member, and every member is in the answer."""
    strategy = strategies(name, lambda count: count - 1)[name]
    shares = strategy.assign(cluster(t=5), MEMBERS)
    assert set(shares) == {"m1", "m2"}
    dealt = [each for share in shares.values() for each in share.partitions]
    assert sorted(dealt) == [TopicPartition("t", number) for number in range(5)]


def test_range_gives_members_what_is_on_their_racks() -> None:
    """Brokers and members name their racks: each member reads nearby."""
    view = ClientMetadata()
    view.apply(
        MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=1, host="h", port=1, rack="a"),
                MetadataResponseBroker(node_id=2, host="h", port=2, rack="b"),
            ],
            topics=[
                MetadataResponseTopic(
                    name="t",
                    partitions=[
                        MetadataResponsePartition(
                            partition_index=number, leader_id=leader, replica_nodes=[leader]
                        )
                        for number, leader in enumerate([1, 2, 1, 2])
                    ],
                )
            ],
        )
    )
    members = [Member("m1", ["t"], rack_id="b"), Member("m2", ["t"], rack_id="a")]
    shares = strategies("range", never)["range"].assign(view, members)
    assert shares["m1"].partitions == [TopicPartition("t", 1), TopicPartition("t", 3)]
    assert shares["m2"].partitions == [TopicPartition("t", 0), TopicPartition("t", 2)]


class Everything:
    """An assignor in kafka-python's style that gives all to one."""

    name = "everything"

    def __init__(self) -> None:
        self.told: list[tuple[list[TopicPartition], int]] = []

    def metadata(self, topics: set[str]) -> Any:
        return type("Metadata", (), {"user_data": b"about me"})

    def assign(self, cluster: Any, members: Any) -> dict[str, Sequence[tuple[str, int]]]:
        winner = max(members, key=lambda member: member.metadata.user_data)
        assert members[winner].subscription == ["t"]
        return {winner.member_id: [("t", n) for n in sorted(cluster.partitions_for_topic("t"))]}

    def on_assignment(self, assignment: Any, generation: int) -> None:
        self.told.append((assignment.partitions(), generation))


def test_a_custom_assignor_sees_user_data_and_is_told_its_share() -> None:
    """What one member adds is what the leader's assignor reads."""
    assignor = Everything()
    strategy = strategies([assignor], never)["everything"]
    assert strategy.user_data(["t"], (), -1) == b"about me"
    members = [Member("m1", ["t"], user_data=b"1"), Member("m2", ["t"], user_data=b"2")]
    shares = strategy.assign(cluster(t=2), members)
    assert {name: list(share.partitions) for name, share in shares.items()} == {
        "m2": [TopicPartition("t", 0), TopicPartition("t", 1)]
    }
    strategy.on_assignment(Share([TopicPartition("t", 1)]), 7)
    assert assignor.told == [([TopicPartition("t", 1)], 7)]


class Addressed:
    """An assignor of our own contract that tells each member something."""

    name = "addressed"
    is_cooperative = False

    def __init__(self) -> None:
        self.told: list[tuple[Sequence[TopicPartition], int, bytes | None]] = []

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> None:
        return None

    def assign(self, partition_counts: PartitionCounts, members: Sequence[Member]) -> Decision:
        return {
            "m1": Share([TopicPartition("t", 0)], b"for m1"),
            "m2": [TopicPartition("t", 1)],
        }

    def on_assignment(
        self, partitions: Sequence[TopicPartition], generation: int, user_data: bytes | None
    ) -> None:
        self.told.append((partitions, generation, user_data))


def test_an_assignor_of_our_own_contract_adds_something_for_each_member() -> None:
    """A share with user data, or plain partitions without."""
    assignor = Addressed()
    strategy = strategies([assignor], never)["addressed"]
    members = [Member("m1", ["t"]), Member("m2", ["t"])]
    shares = strategy.assign(cluster(t=2), members)
    assert shares == {
        "m1": Share([TopicPartition("t", 0)], b"for m1"),
        "m2": Share([TopicPartition("t", 1)], None),
    }
    strategy.on_assignment(shares["m1"], 3)
    strategy.on_assignment(shares["m2"], 4)
    assert assignor.told == [
        ([TopicPartition("t", 0)], 3, b"for m1"),
        ([TopicPartition("t", 1)], 4, None),
    ]


def test_an_assignor_that_takes_no_user_data_is_told_the_rest() -> None:
    """It was written before there was any."""
    told: list[tuple[Any, int]] = []

    class Older(Addressed):
        def on_assignment(self, partitions: Any, generation: int) -> None:  # type: ignore[override]
            told.append((partitions, generation))

    strategies([Older()], never)["addressed"].on_assignment(Share([], b"more"), 3)
    assert told == [([], 3)]


def test_partitions_for_strangers_are_refused() -> None:
    """A custom assignor that invents members is told so."""

    class Inventive(Everything):
        def assign(self, cluster: Any, members: Any) -> dict[str, Sequence[tuple[str, int]]]:
            return {"nobody": [("t", 0)]}

    with pytest.raises(ValueError, match="nobody"):
        strategies([Inventive()], never)["everything"].assign(cluster(t=1), MEMBERS)
