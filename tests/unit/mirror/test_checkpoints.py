"""Shards: a partition keeps its own forever, and the work is divided evenly."""

from __future__ import annotations

from barnabas.mirror.checkpoints import (
    SHARDS,
    as_group_offsets,
    divide_shards,
    shard_of,
    transactional_id,
)
from barnabas.mirror.positions import Position
from barnabas.mirror.replication_policy import ReplicationFlow
from barnabas.model.ids import TopicPartition


def test_a_partition_is_always_in_the_same_shard() -> None:
    # Fixed: a version that counted differently would not fence earlier ones.
    assert SHARDS == 32
    assert [shard_of(TopicPartition("orders", index)) for index in range(3)] == [14, 15, 16]
    assert shard_of(TopicPartition("größen", 40)) == 7
    assert transactional_id("barnabas-mirror.m", 3) == "barnabas-mirror.m.3"


def test_partitions_of_a_topic_are_in_different_shards() -> None:
    shards = [shard_of(TopicPartition("t", index)) for index in range(SHARDS)]
    assert sorted(shards) == list(range(SHARDS))


def test_tasks_have_about_as_much_each() -> None:
    backlog = {TopicPartition("t", index): count for index, count in enumerate([90, 10, 40, 50])}
    shares = divide_shards(backlog, 2)
    by_shard = {shard_of(partition): count for partition, count in backlog.items()}
    assert sorted(sum(by_shard[shard] for shard in shards) for shards in shares) == [90, 100]
    assert sorted(shard for shards in shares for shard in shards) == sorted(by_shard)


def test_there_are_no_more_tasks_than_shards_with_work() -> None:
    assert len(divide_shards({TopicPartition("t", 0): 5}, 8)) == 1
    assert divide_shards({}, 8) == []
    same_shard = {TopicPartition("t", 0): 5, TopicPartition("t", SHARDS): 5}
    assert len(divide_shards(same_shard, 8)) == 1


def test_a_checkpoint_has_the_position_and_the_topic_id() -> None:
    flow = ReplicationFlow("s", "t", "barnabas-mirror.m", "old.")
    offsets = as_group_offsets(flow, {TopicPartition("orders", 3): Position(17, "id")})
    [(partition, offset)] = offsets.items()
    assert partition == TopicPartition("old.orders", 3)
    assert (offset.offset, offset.metadata) == (17, "id")
