"""Random groups for the properties of assignors, and what every assignment must satisfy."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from barnabas.assignment.contract import Assignment, Member, PartitionCounts
from barnabas.model.ids import TopicPartition

TOPICS = ["t0", "t1", "t2", "t3", "t4"]

counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 12), min_size=1)


@st.composite
def members(draw: st.DrawFn, *, same_topics: bool = False) -> list[Member]:
    subscription = st.lists(st.sampled_from(TOPICS), min_size=1, unique=True)
    shared = draw(subscription)
    names = draw(st.lists(st.integers(0, 99), min_size=1, max_size=9, unique=True))
    return [
        Member(
            f"m{number}",
            shared if same_topics else draw(subscription),
            instance_id=draw(st.sampled_from([None, f"i{number}"])),
        )
        for number in names
    ]


def partitions(spec: str) -> list[TopicPartition]:
    """Read "t0p0 t1p2"."""
    found = []
    for word in spec.split():
        topic, _, number = word.rpartition("p")
        found.append(TopicPartition(topic, int(number)))
    return found


def check_complete(
    assignment: Assignment, partition_counts: PartitionCounts, group: Sequence[Member]
) -> None:
    """Every subscribed partition has exactly one owner, who subscribes to it."""
    subscribed = {topic for member in group for topic in member.topics}
    expected = [
        TopicPartition(topic, n)
        for topic, count in partition_counts.items()
        if topic in subscribed
        for n in range(count)
    ]
    assert set(assignment) == {member.member_id for member in group}
    assert sorted(p for mine in assignment.values() for p in mine) == sorted(expected)
    for member in group:
        assert all(p.topic in member.topics for p in assignment[member.member_id])
        assert assignment[member.member_id] == sorted(assignment[member.member_id])


def check_balanced(assignment: Assignment, group: Sequence[Member]) -> None:
    """No partition could move to a member that has two fewer."""
    for giver in group:
        mine = assignment[giver.member_id]
        for taker in group:
            if len(assignment[taker.member_id]) + 2 <= len(mine):
                assert not any(p.topic in taker.topics for p in mine)
