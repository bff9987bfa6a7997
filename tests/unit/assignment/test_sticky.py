"""Balance and stickiness, eager and cooperative, also while members come and go."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.assignment.groups import (
    TOPICS,
    check_balanced,
    check_complete,
    counts,
    members,
    partitions,
)

from barnabas.assignment.contract import Assignment, Member
from barnabas.assignment.sticky import CooperativeStickyAssignor, StickyAssignor, previous
from barnabas.model.ids import TopicPartition

STICKY = StickyAssignor()
COOPERATIVE = CooperativeStickyAssignor()


def remembering(group: list[Member], assignment: Assignment, generation: int) -> list[Member]:
    """The members as they join again after an assignment."""
    return [
        replace(
            member,
            user_data=STICKY.user_data(assignment.get(member.member_id, []), generation),
        )
        for member in group
    ]


def owning(group: list[Member], assignment: Assignment, generation: int) -> list[Member]:
    return [
        replace(
            member,
            owned=assignment.get(member.member_id, []),
            user_data=COOPERATIVE.user_data([], generation),
        )
        for member in group
    ]


def test_user_data_has_kafkas_layout() -> None:
    data = STICKY.user_data(partitions("tp1 tp0"), 7)
    assert data.hex() == "0000000100017400000002000000000000000100000007"
    assert previous(Member("m", ["t"], user_data=data)) == (7, partitions("tp0 tp1"))
    first_version = data[:-4]
    assert previous(Member("m", ["t"], user_data=first_version)) == (-1, partitions("tp0 tp1"))
    assert previous(Member("m", ["t"], user_data=b"\xff")) == (-1, ())
    assert COOPERATIVE.user_data(partitions("tp1"), 7).hex() == "00000007"
    assert not STICKY.is_cooperative
    assert COOPERATIVE.is_cooperative


def test_member_that_leaves_is_replaced_without_touching_the_others() -> None:
    """The example by which the sticky assignor is known: round robin would move five of eight."""
    group = [Member(name, [*TOPICS[:4]]) for name in ("C0", "C1", "C2")]
    partition_counts = dict.fromkeys(TOPICS[:4], 2)
    first = STICKY.assign(partition_counts, group)
    assert sorted(map(len, first.values())) == [2, 3, 3]
    left = remembering([group[0], group[2]], first, 1)
    second = STICKY.assign(partition_counts, left)
    assert set(first["C0"]) <= set(second["C0"])
    assert set(first["C2"]) <= set(second["C2"])
    check_balanced(second, left)


def test_unequal_subscriptions_of_the_literature() -> None:
    group = [
        Member("C0", ["t0"]),
        Member("C1", ["t0", "t1"]),
        Member("C2", ["t0", "t1", "t2"]),
    ]
    assert STICKY.assign({"t0": 1, "t1": 2, "t2": 3}, group) == {
        "C0": partitions("t0p0"),
        "C1": partitions("t1p0 t1p1"),
        "C2": partitions("t2p0 t2p1 t2p2"),
    }


def test_of_two_claims_the_later_generation_is_right() -> None:
    claim = partitions("tp0 tp1")
    group = [
        Member("a", ["t"], user_data=STICKY.user_data(claim, 1)),
        Member("b", ["t"], user_data=STICKY.user_data(claim, 2)),
    ]
    assert STICKY.assign({"t": 4}, group)["b"] == claim


def test_of_two_equal_claims_neither_counts() -> None:
    group = [
        Member("a", ["t"], owned=partitions("tp0"), generation=2),
        Member("b", ["t"], owned=partitions("tp0"), generation=2),
    ]
    assignment = COOPERATIVE.assign({"t": 2}, group)
    assert assignment == {"a": partitions("tp0"), "b": partitions("tp1")}


@given(counts, members())
def test_everything_is_assigned_in_balance(partition_counts, group) -> None:  # type: ignore[no-untyped-def]
    assignment = STICKY.assign(partition_counts, group)
    check_complete(assignment, partition_counts, group)
    check_balanced(assignment, group)
    assert assignment == STICKY.assign(partition_counts, group[::-1])


@given(counts, members())
def test_nothing_moves_when_nothing_changes(partition_counts, group) -> None:  # type: ignore[no-untyped-def]
    first = STICKY.assign(partition_counts, group)
    assert STICKY.assign(partition_counts, remembering(group, first, 1)) == first
    second = COOPERATIVE.assign(partition_counts, owning(group, first, 1))
    assert second == first


@given(counts, members(same_topics=True), st.data())
def test_only_what_must_move_moves(partition_counts, group, data) -> None:  # type: ignore[no-untyped-def]
    """Among members with one subscription nothing moves between two that stay."""
    first = STICKY.assign(partition_counts, group)
    staying = data.draw(st.lists(st.sampled_from(group), unique_by=lambda m: m.member_id))
    new = [Member(f"n{n}", group[0].topics) for n in range(data.draw(st.integers(0, 4)))]
    next_group = [*staying, *new]
    if not next_group:
        return
    second = STICKY.assign(partition_counts, remembering(next_group, first, 1))
    check_complete(second, partition_counts, next_group)
    check_balanced(second, next_group)
    for member in staying:
        for other in staying:
            if other is not member:
                moved = set(first[member.member_id]) & set(second[other.member_id])
                assert not moved


def settle(partition_counts, group, owned: Assignment, generation: int, rounds: int) -> Assignment:  # type: ignore[no-untyped-def]
    """Rejoin until nothing changes; nothing may have two owners meanwhile."""
    for _ in range(rounds + 1):
        assignment = COOPERATIVE.assign(partition_counts, owning(group, owned, generation))
        # While they rejoin, members go on with what they own: it must not have a new owner.
        for member in group:
            for other in group:
                if other is not member:
                    kept = set(owned.get(other.member_id, []))
                    assert not kept & set(assignment[member.member_id])
        if assignment == {m.member_id: owned.get(m.member_id, []) for m in group}:
            return assignment
        owned = assignment
        generation += 1
    raise AssertionError(f"not settled after {rounds} rounds")


@settings(max_examples=60)
@given(counts, st.data())
def test_cooperative_rounds_never_share_and_end_in_balance(partition_counts, data) -> None:  # type: ignore[no-untyped-def]
    """Two rounds are enough when all subscribe to the same topics, and a few more if not."""
    owned: Assignment = {}
    is_same = data.draw(st.booleans())
    for generation in (0, 10, 20):
        group = data.draw(members(same_topics=is_same))
        owned = settle(partition_counts, group, owned, generation, 2 if is_same else 8)
        check_complete(owned, partition_counts, group)
        check_balanced(owned, group)


@given(counts, members(), st.data())
def test_claims_of_any_kind_do_no_harm(partition_counts, group, data) -> None:  # type: ignore[no-untyped-def]
    anything = st.lists(
        st.builds(TopicPartition, st.sampled_from([*TOPICS, "gone"]), st.integers(-1, 14))
    )
    claiming = [
        replace(member, owned=data.draw(anything), generation=data.draw(st.integers(-1, 3)))
        for member in group
    ]
    assignment = STICKY.assign(partition_counts, claiming)
    check_complete(assignment, partition_counts, group)
    check_balanced(assignment, group)
