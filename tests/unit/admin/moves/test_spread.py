"""Evening out: all get their share, little is copied, and racks stay apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from barnabas.admin.moves.plan import Holding, cost_of
from barnabas.admin.moves.spread import Racks, spread
from barnabas.model.ids import TopicPartition

Present = dict[TopicPartition, Holding]


def held(topic: str, *replicas: tuple[int, ...], size: int = 10) -> Present:
    return {
        TopicPartition(topic, number): Holding(each, each[0], size * (number + 1))
        for number, each in enumerate(replicas)
    }


def after(
    present: Present, plan: Mapping[TopicPartition, tuple[int, ...]]
) -> list[tuple[int, ...]]:
    return [plan.get(key, each.replicas) for key, each in present.items()]


def counts(assignment: list[tuple[int, ...]], racks: Racks) -> tuple[list[int], list[int]]:
    replicas = Counter(broker for each in assignment for broker in each)
    leaders = Counter(each[0] for each in assignment)
    return [replicas[broker] for broker in racks], [leaders[broker] for broker in racks]


def test_what_is_even_stays() -> None:
    present = held("t", (1, 2), (2, 3), (3, 1))
    assert spread(present, dict.fromkeys((1, 2, 3))) == {}
    assert spread({}, {1: None}) == {}


def test_new_brokers_get_their_share_of_the_smallest() -> None:
    present = held("t", (1,), (2,), (1,), (2,), (1,), (2,), (1,), (2,))
    racks: Racks = dict.fromkeys((1, 2, 3, 4))
    plan = spread(present, racks)
    assert counts(after(present, plan), racks) == ([2, 2, 2, 2], [2, 2, 2, 2])
    assert [key.partition for key in plan] == [0, 1, 2, 3]
    assert cost_of(present, plan).bytes_to_copy == 10 + 20 + 30 + 40


def test_leaders_move_without_a_copy() -> None:
    present = held("t", (1, 2, 3), (1, 2, 3), (1, 2, 3))
    racks: Racks = dict.fromkeys((1, 2, 3))
    plan = spread(present, racks)
    assert counts(after(present, plan), racks) == ([3, 3, 3], [1, 1, 1])
    assert len(plan) == 2
    assert cost_of(present, plan).bytes_to_copy == 0


def test_leaders_are_handed_on_where_two_share_nothing() -> None:
    """Broker 1 shares no partition with 3, so 2 takes one over and gives one away."""
    present = held("t", (1, 2), (1, 2), (2, 3), (1, 2), (2, 3), (3, 2))
    racks: Racks = dict.fromkeys((1, 2, 3))
    moved = after(present, spread(present, racks))
    assert counts(moved, racks)[1] == [2, 2, 2]


def test_each_topic_is_spread() -> None:
    present = held("a", (1,), (1,)) | held("b", (2,), (2,)) | held("c", (1,), (2,))
    plan = spread(present, dict.fromkeys((1, 2, 3)))
    assert sorted(key.topic for key in plan) == ["a", "b"]


def test_replicas_stay_on_different_racks() -> None:
    present = held("t", (1, 2), (1, 2), (1, 2), (1, 2))
    racks: Racks = {1: "a", 2: "b", 3: "b"}
    plan = spread(present, racks)
    moved = after(present, plan)
    assert all({racks[broker] for broker in each} == {"a", "b"} for each in moved)
    assert counts(moved, racks)[0] == [4, 2, 2]


def test_what_is_on_other_brokers_stays() -> None:
    present = held("t", (9, 1), (9, 1), (9, 1), (9, 1))
    plan = spread(present, dict.fromkeys((1, 2)))
    assert sorted(replicas[1] for replicas in after(present, plan)) == [1, 1, 2, 2]


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Present, Racks]:
    brokers = draw(st.integers(1, 6))
    old = draw(st.integers(1, brokers))
    present: Present = {}
    for topic in "ab":
        for number in range(draw(st.integers(0, 8))):
            replicas = tuple(draw(st.permutations(range(old))))[: draw(st.integers(1, old))]
            size = draw(st.integers(0, 100))
            present[TopicPartition(topic, number)] = Holding(replicas, replicas[0], size)
    return present, dict.fromkeys(range(brokers))


@given(clusters())
def test_any_cluster_becomes_even(cluster: tuple[Present, Racks]) -> None:
    present, racks = cluster
    moved = after(present, spread(present, racks))
    for before, each in zip(present.values(), moved, strict=True):
        assert len(set(each)) == len(each) == len(before.replicas)
        assert set(each) <= racks.keys()
    replicas, _ = counts(moved, racks)
    assert max(replicas) - min(replicas) <= 1
    again = {key: Holding(each, each[0], 0) for key, each in zip(present, moved, strict=True)}
    assert spread(again, racks) == {}
