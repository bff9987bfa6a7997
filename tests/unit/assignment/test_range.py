"""Contiguous ranges, topic by topic."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.assignment.groups import check_complete, counts, members, partitions

from barnabas.assignment.contract import Member
from barnabas.assignment.range import RangeAssignor
from barnabas.model.ids import TopicPartition


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


def on(**racks: str) -> dict[TopicPartition, list[str]]:
    """Racks of partitions, as in on(tp0="a b")."""
    return {partitions(name)[0]: text.split() for name, text in racks.items()}


def test_members_get_what_is_on_their_rack_first() -> None:
    group = [Member("a", ["t"], rack_id="x"), Member("b", ["t"], rack_id="y")]
    racks = on(tp0="y", tp1="y", tp2="x", tp3="x")
    assert RangeAssignor().assign({"t": 4}, group, racks) == {
        "a": partitions("tp2 tp3"),
        "b": partitions("tp0 tp1"),
    }


def test_balance_comes_before_racks() -> None:
    group = [Member("a", ["t"], rack_id="x"), Member("b", ["t"], rack_id="y")]
    racks = on(tp0="x", tp1="x", tp2="x", tp3="x y")
    assert RangeAssignor().assign({"t": 4}, group, racks) == {
        "a": partitions("tp0 tp1"),
        "b": partitions("tp2 tp3"),
    }


def test_racks_that_make_no_difference_leave_the_ranges() -> None:
    plain = [Member("a", ["t"]), Member("b", ["t"])]
    expected = RangeAssignor().assign({"t": 3}, plain)
    near = [Member("a", ["t"], rack_id="y"), Member("b", ["t"], rack_id="x")]
    everywhere = on(tp0="x y", tp1="x y", tp2="y x")
    strange = [Member("a", ["t"], rack_id="p"), Member("b", ["t"], rack_id="q")]
    assert RangeAssignor().assign({"t": 3}, near, everywhere) == expected
    assert RangeAssignor().assign({"t": 3}, strange, on(tp0="x", tp1="y", tp2="x")) == expected
    assert RangeAssignor().assign({"t": 3}, near) == expected


def test_equal_partitions_of_equal_topics_stay_together_on_a_rack() -> None:
    group = [Member("a", ["t", "u"], rack_id="x"), Member("b", ["t", "u"], rack_id="y")]
    racks = on(tp0="x y", tp1="x", up0="y", up1="x y")
    assert RangeAssignor().assign({"t": 2, "u": 2}, group, racks) == {
        "a": partitions("tp1 up1"),
        "b": partitions("tp0 up0"),
    }


@given(counts, members(), st.data())
def test_with_racks_shares_are_as_large_as_without(  # type: ignore[no-untyped-def]
    partition_counts, group, data
) -> None:
    names = st.sampled_from(["x", "y", "z"])
    group = [replace(member, rack_id=data.draw(names)) for member in group]
    choices = data.draw(st.lists(st.lists(names, max_size=2), min_size=1, max_size=5))
    racks = {
        TopicPartition(topic, number): choices[(number * 7 + len(topic)) % len(choices)]
        for topic, count in partition_counts.items()
        for number in range(count)
    }
    assignment = RangeAssignor().assign(partition_counts, group, racks)
    check_complete(assignment, partition_counts, group)
    plain = RangeAssignor().assign(partition_counts, group)
    for topic in partition_counts:
        sizes = [
            sorted(sum(p.topic == topic for p in share) for share in each.values())
            for each in (assignment, plain)
        ]
        assert sizes[0] == sizes[1]
