"""Contiguous ranges, topic by topic."""

from __future__ import annotations

from hypothesis import given
from tests.unit.assignment.groups import check_complete, counts, members, partitions

from barnabas.assignment.contract import Member
from barnabas.assignment.range import RangeAssignor


def test_two_topics_of_three_partitions() -> None:
    group = [Member("C1", ["t0", "t1"]), Member("C0", ["t0", "t1"])]
    assert RangeAssignor().assign({"t0": 3, "t1": 3}, group) == {
        "C0": partitions("t0p0 t0p1 t1p0 t1p1"),
        "C1": partitions("t0p2 t1p2"),
    }


def test_more_members_than_partitions() -> None:
    group = [Member(name, ["t"]) for name in ("a", "b", "c")]
    assert RangeAssignor().assign({"t": 2}, group) == {
        "a": partitions("tp0"),
        "b": partitions("tp1"),
        "c": [],
    }


def test_static_members_come_first_in_order_of_their_instance_ids() -> None:
    group = [Member("a", ["t"]), Member("z", ["t"], instance_id="1"), Member("y", ["t"], "2")]
    assert RangeAssignor().assign({"t": 3}, group) == {
        "z": partitions("tp0"),
        "y": partitions("tp1"),
        "a": partitions("tp2"),
    }


def test_topics_that_do_not_exist_are_passed_over() -> None:
    assert RangeAssignor().assign({}, [Member("a", ["gone"])]) == {"a": []}
    assert RangeAssignor().assign({"t": 1}, []) == {}


@given(counts, members())
def test_everything_is_assigned_in_contiguous_ranges(partition_counts, group) -> None:  # type: ignore[no-untyped-def]
    assignment = RangeAssignor().assign(partition_counts, group)
    check_complete(assignment, partition_counts, group)
    assert assignment == RangeAssignor().assign(partition_counts, group[::-1])
    for topic in partition_counts:
        sizes = []
        for member in group:
            numbers = [p.partition for p in assignment[member.member_id] if p.topic == topic]
            if numbers:
                assert numbers == list(range(numbers[0], numbers[-1] + 1))
            if topic in member.topics:
                sizes.append(len(numbers))
        assert not sizes or max(sizes) - min(sizes) <= 1
