"""Chance, from the source that it is given."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.assignment.groups import check_complete, counts, members, partitions

from barnabas.assignment.contract import Member
from barnabas.assignment.random import RandomAssignor


def test_chance_decides() -> None:
    group = [Member("a", ["t"]), Member("b", ["t"])]
    draws = iter([1, 1, 0])
    assert RandomAssignor(lambda count: next(draws)).assign({"t": 3}, group) == {
        "a": partitions("tp2"),
        "b": partitions("tp0 tp1"),
    }


@given(counts, members(), st.integers(0, 2**32))
def test_everything_is_assigned_to_subscribers(partition_counts, group, seed) -> None:  # type: ignore[no-untyped-def]
    assignor = RandomAssignor(random.Random(seed).randrange)
    check_complete(assignor.assign(partition_counts, group), partition_counts, group)
