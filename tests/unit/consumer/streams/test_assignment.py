"""Who reads which partition: the same answer as Java's consumer gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.consumer.streams.assignment import (
    assign_range,
    assign_round_robin,
    fetcher_of,
)
from barnabas.metadata.partition_for import java_hash
from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition

counts = st.dictionaries(st.sampled_from("abc"), st.integers(0, 9), min_size=1)
readers = st.lists(st.integers(0, 20), min_size=1, max_size=6, unique=True)


def test_range_gives_runs_and_the_first_streams_one_more() -> None:
    """Seven partitions over four streams are two, two, two and one."""
    threads = {"t": ["c2-0", "c1-1", "c1-0", "c2-1"]}
    assigned = assign_range(threads, {"t": range(7)})
    runs = {
        name: [p for (_, p), owner in assigned.items() if owner == name] for name in threads["t"]
    }
    assert runs == {"c1-0": [0, 1], "c1-1": [2, 3], "c2-0": [4, 5], "c2-1": [6]}


def test_range_leaves_streams_without_partitions() -> None:
    """More streams than partitions: the last ones idle."""
    assert assign_range({"t": ["a-0", "b-0", "c-0"]}, {"t": [0]}) == {TopicPartition("t", 0): "a-0"}
    assert assign_range({"t": ["a-0"]}, {}) == {}


@given(counts, readers)
def test_every_partition_has_one_reader(counts: dict[str, int], readers: list[int]) -> None:
    """Both ways cover everything, and spread it evenly."""
    threads = {topic: [f"c-{number}" for number in readers] for topic in counts}
    partitions = {topic: range(count) for topic, count in counts.items()}
    every = {TopicPartition(topic, n) for topic, count in counts.items() for n in range(count)}
    for assign in (assign_range, assign_round_robin):
        assigned = assign(threads, partitions)
        assert set(assigned) == every
    loads = [list(assigned.values()).count(name) for name in threads[next(iter(threads))]]
    assert max(loads) - min(loads) <= 1


def test_round_robin_wants_all_alike() -> None:
    """As Kafka's, it refuses consumers whose streams differ between topics."""
    with pytest.raises(InvalidValueError, match="roundrobin"):
        assign_round_robin({"a": ["c-0"], "b": ["c-0", "d-0"]}, {"a": [0], "b": [0]})
    assert assign_round_robin({}, {}) == {}


def test_round_robin_deals_in_the_order_of_java_hashes() -> None:
    """The order is that of the hashes of "[topic,partition]"."""
    assigned = assign_round_robin({"t": ["c-0", "d-0"]}, {"t": [2, 0, 1]})
    assert java_hash("[t,0]") < java_hash("[t,1]") < java_hash("[t,2]")
    assert [assigned[TopicPartition("t", n)] for n in range(3)] == ["c-0", "d-0", "c-0"]


def test_a_partition_always_has_the_same_fetcher() -> None:
    """The number is in range, and depends on topic and partition alone."""
    numbers = [fetcher_of("topic", partition, 4) for partition in range(8)]
    assert numbers == [fetcher_of("topic", partition, 4) for partition in range(8)]
    assert set(numbers) == {0, 1, 2, 3}
    assert fetcher_of("anything", 5, 1) == 0
