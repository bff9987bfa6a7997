"""What moves cost, and proposals that are even and cheap."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from barnabas.admin.moves.plan import BrokerTotal, Holding, cost_of, propose
from barnabas.admin.moves.throttles import throttled_replicas
from barnabas.model.ids import TopicPartition

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


def test_costs() -> None:
    present = {
        T0: Holding((1, 2), 1, 100),
        T1: Holding((2, 3), 3, 10),
        T2: Holding((3, 1), 3, None),
    }
    cost = cost_of(present, {T0: (3, 4), T1: (2, 3), T2: (1, 3)})
    first, second = cost.moves
    assert (first.adding, first.removing, first.bytes_to_copy) == ((3, 4), (1, 2), 200)
    assert (second.adding, second.removing, second.bytes_to_copy) == ((), (), 0)
    assert cost.bytes_to_copy == 200
    assert cost.brokers == {
        1: BrokerTotal(receives=0, sends=200, drops=100),
        2: BrokerTotal(receives=0, sends=0, drops=100),
        3: BrokerTotal(receives=100),
        4: BrokerTotal(receives=100),
    }


def test_throttled_replicas() -> None:
    """All that are there may give; only new ones get; what stays is not throttled."""
    present = {T0: Holding((1, 2), 1, 1), T1: Holding((1, 2), 1, 1), T2: Holding((1,), 1, 1)}
    cost = cost_of(present, {T0: (2, 3), T1: (2, 1), T2: (2,)})
    assert throttled_replicas(cost.moves) == {
        "t": {
            "leader.replication.throttled.replicas": "0:1,0:2,2:1",
            "follower.replication.throttled.replicas": "0:3,2:2",
        }
    }


def test_what_is_even_stays() -> None:
    present = {TopicPartition("t", n): Holding(((n + 1) % 3, (n + 2) % 3), 0, 9) for n in range(3)}
    assert propose(present, dict.fromkeys(range(3))) == {
        key: held.replicas for key, held in present.items()
    }


def test_a_broker_takes_the_place_of_another() -> None:
    """Leaders that can stay do; only the new broker appears where the old one was."""
    present = {
        T0: Holding((2, 3, 1), 2, 9),
        T1: Holding((3, 1, 2), 3, 9),
        T2: Holding((1, 2, 3), 1, 9),
    }
    racks: dict[int, str | None] = {1: "rack-1", 3: "rack-3", 4: "rack-2"}
    assert propose(present, racks) == {T0: (4, 3, 1), T1: (3, 1, 4), T2: (1, 4, 3)}


def test_many_small_topics_do_not_pile_up() -> None:
    present = {TopicPartition(f"t{n}", 0): Holding((0,), 0, 1) for n in range(9)}
    proposed = propose(present, dict.fromkeys(range(3)))
    assert Counter(held[0] for held in proposed.values()) == {0: 3, 1: 3, 2: 3}


@given(
    racks=st.lists(st.sampled_from("abc"), min_size=3, max_size=6),
    widths=st.lists(st.integers(1, 3), min_size=1, max_size=5),
)
def test_proposals_are_possible_and_even(racks: list[str], widths: list[int]) -> None:
    """As many replicas as before, on the given brokers, over as many racks as there are."""
    brokers: dict[int, str | None] = dict(enumerate(racks, 10))
    present = {
        TopicPartition(f"t{topic}", number): Holding(tuple(range(width)), 0, 5)
        for topic, width in enumerate(widths)
        for number in range(6)
    }
    proposed = propose(present, brokers)
    assert proposed.keys() == present.keys()
    for key, held in proposed.items():
        assert len(held) == len(set(held)) == len(present[key].replicas)
        assert set(held) <= brokers.keys()
        assert len({brokers[broker] for broker in held}) == min(len(held), len(set(racks)))
    leaders = Counter(held[0] for held in proposed.values())
    assert max(leaders.values()) - min(leaders[broker] for broker in brokers) <= 1 + len(widths)
