"""Lanes: a partition keeps its own for ever, and the work is shared out evenly."""

from __future__ import annotations

from barnabas.mirror.lanes import LANES, lane_of, shared_out, transactional_id
from barnabas.model.ids import TopicPartition


def test_a_partition_is_always_in_the_same_lane() -> None:
    # Written down: a version that counted differently would not shut out those before it.
    assert LANES == 32
    assert [lane_of(TopicPartition("orders", index)) for index in range(3)] == [14, 15, 16]
    assert lane_of(TopicPartition("größen", 40)) == 7
    assert transactional_id("barnabas-mirror.m", 3) == "barnabas-mirror.m.3"


def test_partitions_of_a_topic_are_in_different_lanes() -> None:
    lanes = [lane_of(TopicPartition("t", index)) for index in range(LANES)]
    assert sorted(lanes) == list(range(LANES))


def test_tasks_have_about_as_much_each() -> None:
    backlog = {TopicPartition("t", index): count for index, count in enumerate([90, 10, 40, 50])}
    shares = shared_out(backlog, 2)
    by_lane = {lane_of(partition): count for partition, count in backlog.items()}
    assert sorted(sum(by_lane[lane] for lane in lanes) for lanes in shares) == [90, 100]
    assert sorted(lane for lanes in shares for lane in lanes) == sorted(by_lane)


def test_there_are_no_more_tasks_than_lanes_with_work() -> None:
    assert len(shared_out({TopicPartition("t", 0): 5}, 8)) == 1
    assert shared_out({}, 8) == []
    same_lane = {TopicPartition("t", 0): 5, TopicPartition("t", LANES): 5}
    assert len(shared_out(same_lane, 8)) == 1
