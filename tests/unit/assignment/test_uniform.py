"""The broker's assignor, and how fast the assignors are."""

from __future__ import annotations

from dataclasses import replace
from time import thread_time

import pytest
from hypothesis import given
from tests.unit.assignment.groups import check_balanced, check_complete, counts, members

from barnabas.assignment.contract import Assignor, Member
from barnabas.assignment.range import RangeAssignor
from barnabas.assignment.round_robin import RoundRobinAssignor
from barnabas.assignment.sticky import CooperativeStickyAssignor, StickyAssignor
from barnabas.assignment.uniform import UniformAssignor


@given(counts, members(), members())
def test_targets_are_complete_balanced_and_stay(partition_counts, group, successors) -> None:  # type: ignore[no-untyped-def]
    uniform = UniformAssignor()
    first = uniform.assign(partition_counts, group)
    check_complete(first, partition_counts, group)
    check_balanced(first, group)
    staying = [replace(m, owned=first.get(m.member_id, [])) for m in group]
    assert uniform.assign(partition_counts, staying) == first
    arriving = [replace(m, owned=first.get(m.member_id, [])) for m in successors]
    second = uniform.assign(partition_counts, arriving)
    check_complete(second, partition_counts, successors)
    check_balanced(second, successors)


@pytest.mark.parametrize(
    "assignor",
    [
        RangeAssignor(),
        RoundRobinAssignor(),
        UniformAssignor(),
        StickyAssignor(),
        CooperativeStickyAssignor(),
    ],
    ids=lambda assignor: assignor.name,
)
@pytest.mark.parametrize("topic_count", [1, 100])
def test_a_thousand_members_and_ten_thousand_partitions(
    assignor: Assignor, topic_count: int
) -> None:
    topics = [f"topic-{n:03d}" for n in range(topic_count)]
    partition_counts = dict.fromkeys(topics, 10_000 // topic_count)
    group = [Member(f"member-{n:04d}", topics) for n in range(1_000)]
    start = thread_time()
    first = assignor.assign(partition_counts, group)
    elapsed = thread_time() - start
    assert sum(map(len, first.values())) == 10_000
    assert elapsed < 2, f"took {elapsed:.2f} s of the processor"  # ten times what it takes
