"""Requests that their deadline ended."""

from __future__ import annotations

from barnabas.broker.partitions.expirations import PARTITIONS_MAX, Expirations
from barnabas.model.ids import TopicPartition


def test_only_some_partitions_are_counted_one_by_one() -> None:
    expirations = Expirations()
    for _ in range(2):
        for number in range(PARTITIONS_MAX + 5):
            expirations.append(TopicPartition("t", number))
    assert expirations.appends == 2 * (PARTITIONS_MAX + 5)
    assert len(expirations.by_partition) == PARTITIONS_MAX
    assert set(expirations.by_partition.values()) == {2}


def test_consumers_and_followers_are_told_apart() -> None:
    expirations = Expirations()
    expirations.fetch(follows=True)
    expirations.fetch(follows=False)
    expirations.fetch(follows=False)
    assert (expirations.consumer_fetches, expirations.follower_fetches) == (2, 1)
