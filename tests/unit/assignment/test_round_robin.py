"""Partitions dealt like cards."""

from __future__ import annotations

from hypothesis import given
from tests.unit.assignment.groups import check_complete, counts, members, partitions

from barnabas.assignment.contract import Member
from barnabas.assignment.round_robin import RoundRobinAssignor


def test_two_topics_of_three_partitions() -> None:
    group = [Member("C0", ["t0", "t1"]), Member("C1", ["t0", "t1"])]
    assert RoundRobinAssignor().assign({"t0": 3, "t1": 3}, group) == {
        "C0": partitions("t0p0 t0p2 t1p1"),
        "C1": partitions("t0p1 t1p0 t1p2"),
    }


def test_unequal_subscriptions() -> None:
    group = [
        Member("C0", ["t0"]),
        Member("C1", ["t0", "t1"]),
        Member("C2", ["t0", "t1", "t2"]),
    ]
    assert RoundRobinAssignor().assign({"t0": 1, "t1": 2, "t2": 3}, group) == {
        "C0": partitions("t0p0"),
        "C1": partitions("t1p0"),
        "C2": partitions("t1p1 t2p0 t2p1 t2p2"),
    }


def dealt(partition_counts, group):  # type: ignore[no-untyped-def]
    """The rule as told: go round, and pass over those who do not subscribe."""
    ordered = sorted(
        group, key=lambda m: (0, m.instance_id) if m.instance_id is not None else (1, m.member_id)
    )
    assignment = {member.member_id: [] for member in group}
    turn = 0
    for topic in sorted(partition_counts):
        if not any(topic in member.topics for member in group):
            continue
        for number in range(partition_counts[topic]):
            while topic not in ordered[turn % len(ordered)].topics:
                turn += 1
            assignment[ordered[turn % len(ordered)].member_id].append((topic, number))
            turn += 1
    return assignment


@given(counts, members())
def test_everything_is_dealt_in_turn(partition_counts, group) -> None:  # type: ignore[no-untyped-def]
    assignment = RoundRobinAssignor().assign(partition_counts, group)
    check_complete(assignment, partition_counts, group)
    assert assignment == dealt(partition_counts, group)
