"""Replica placement: counts, assignments by hand, and where replicas go."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.metadata.replica_placement import assign_replicas, check_assignment, check_counts
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError


@pytest.mark.parametrize(
    ("partitions", "factor", "brokers", "code"),
    [
        (0, 1, 1, ErrorCode.INVALID_PARTITIONS),
        (-1, 1, 1, ErrorCode.INVALID_PARTITIONS),
        (100_001, 1, 1, ErrorCode.INVALID_PARTITIONS),
        (1, 0, 1, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, -1, 1, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 4, 3, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_bad_counts(partitions: int, factor: int, brokers: int, code: ErrorCode) -> None:
    with pytest.raises(RequestError) as refusal:
        check_counts(partitions, factor, brokers)
    assert refusal.value.code == code


def test_good_counts() -> None:
    check_counts(1, 1, 1)
    check_counts(100_000, 3, 3)


@pytest.mark.parametrize(
    ("assignment", "first"),
    [
        ({}, 0),
        ({1: [1]}, 0),
        ({0: [1], 2: [1]}, 0),
        ({0: []}, 0),
        ({0: [1, 1]}, 0),
        ({0: [1], 1: [1, 2]}, 0),
        ({0: [9]}, 0),
        ({0: [-1]}, 0),
        ({0: [1]}, 3),
    ],
)
def test_bad_assignments(assignment: dict[int, list[int]], first: int) -> None:
    with pytest.raises(RequestError) as refusal:
        check_assignment(assignment, [1, 2, 3], first)
    assert refusal.value.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_good_assignments() -> None:
    check_assignment({0: [1, 2], 1: [3, 1]}, [1, 2, 3])
    check_assignment({3: [1], 4: [2]}, [1, 2, 3], 3)


@given(
    brokers=st.sets(st.integers(0, 50), min_size=1, max_size=12),
    partitions=st.integers(1, 60),
    data=st.data(),
)
def test_replicas_are_spread(brokers: set[int], partitions: int, data: st.DataObject) -> None:
    """Every partition has distinct replicas, and leaders are as even as can be."""
    factor = data.draw(st.integers(1, len(brokers)))
    start, shift = data.draw(st.tuples(st.integers(0, 20), st.integers(0, 20)))
    alive = dict.fromkeys(brokers)
    assigned = assign_replicas(alive, range(partitions), factor, start=start, shift=shift)
    assert list(assigned) == list(range(partitions))
    for replicas in assigned.values():
        assert len(replicas) == len(set(replicas)) == factor
        assert set(replicas) <= brokers
    leaders = Counter(replicas[0] for replicas in assigned.values())
    counts = [leaders[broker] for broker in brokers]
    assert max(counts) - min(counts) <= 1


def test_the_known_assignment() -> None:
    """Ten partitions, three replicas, five brokers, from 0: the table of Kafka's own docs."""
    assigned = assign_replicas(dict.fromkeys(range(5)), range(10), 3, start=0, shift=0)
    assert list(assigned.values()) == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]


def test_the_known_assignment_by_racks() -> None:
    """Six brokers in three racks, twelve partitions: the second round is shifted."""
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    assigned = assign_replicas(racks, range(12), 3, start=0, shift=0)
    assert list(assigned.values()) == [
        (0, 3, 1),
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),
        (3, 2, 0),
        (1, 0, 3),
        (5, 3, 1),
        (4, 1, 5),
        (2, 5, 4),
    ]


def test_one_broker_without_a_rack_means_that_racks_are_not_looked_at() -> None:
    assigned = assign_replicas({0: "a", 1: "a", 2: None}, range(3), 2, start=0, shift=0)
    assert assigned == assign_replicas(dict.fromkeys(range(3)), range(3), 2, start=0, shift=0)


@given(
    racks=st.dictionaries(st.integers(0, 50), st.sampled_from("abcd"), min_size=1, max_size=12),
    partitions=st.integers(1, 60),
    data=st.data(),
)
def test_no_rack_twice_while_another_has_none(
    racks: dict[int, str], partitions: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    start, shift = data.draw(st.tuples(st.integers(0, 20), st.integers(0, 20)))
    assigned = assign_replicas(dict(racks), range(partitions), factor, start=start, shift=shift)
    for replicas in assigned.values():
        assert len(replicas) == len(set(replicas)) == factor
        assert set(replicas) <= racks.keys()
        used = {racks[broker] for broker in replicas}
        assert len(used) == min(factor, len(set(racks.values())))
    leaders = Counter(replicas[0] for replicas in assigned.values())
    counts = [leaders[broker] for broker in racks]
    assert max(counts) - min(counts) <= 1


@given(
    width=st.integers(1, 4),
    depth=st.integers(1, 4),
    rounds=st.integers(1, 3),
    data=st.data(),
)
def test_even_racks_are_filled_evenly(
    width: int, depth: int, rounds: int, data: st.DataObject
) -> None:
    """As many brokers in each rack: full rounds give each broker as many replicas as another."""
    racks: dict[int, str | None] = {n: f"rack{n % width}" for n in range(width * depth)}
    factor = data.draw(st.integers(1, width))
    start = data.draw(st.integers(0, 20))
    assigned = assign_replicas(
        racks, range(len(racks) * depth * rounds), factor, start=start, shift=0
    )
    held = Counter(broker for replicas in assigned.values() for broker in replicas)
    assert set(held.values()) == {depth * rounds * factor}
