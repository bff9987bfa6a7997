"""How long consumer groups take to reach a new epoch."""

from __future__ import annotations

from barnabas.groups.consumer_group import ConsumerGroup, ConsumerMember
from barnabas.groups.counts import GroupCounts
from barnabas.groups.rebalance_watch import watch_rebalance
from barnabas.groups.reconciliation import Current
from barnabas.metrics.registry import Registry


def member(name: str, epoch: int) -> ConsumerMember:
    return ConsumerMember(name, current=Current(epoch=epoch))


def test_it_lasts_until_every_member_has_the_epoch() -> None:
    counts, group = GroupCounts(Registry()), ConsumerGroup("g")
    watch_rebalance(group, counts, 0)
    assert counts.consumer_rebalances.value == 0
    group.epoch = group.target_epoch = 1
    group.put(member("a", 1))
    group.put(member("b", 0))
    watch_rebalance(group, counts, 1000)
    watch_rebalance(group, counts, 2000)
    assert (counts.consumer_rebalances.value, counts.consumer_ms.count) == (1, 0)
    group.put(member("b", 1))
    watch_rebalance(group, counts, 4000)
    watch_rebalance(group, counts, 9000)
    assert (counts.consumer_ms.count, counts.consumer_ms.total) == (1, 3000)


def test_epochs_that_follow_each_other_are_one_rebalance() -> None:
    counts, group = GroupCounts(Registry()), ConsumerGroup("g")
    group.put(member("a", 0))
    group.epoch = group.target_epoch = 1
    watch_rebalance(group, counts, 1000)
    group.epoch = group.target_epoch = 3
    watch_rebalance(group, counts, 2000)
    group.put(member("a", 3))
    watch_rebalance(group, counts, 5000)
    assert counts.consumer_rebalances.value == 3
    assert (counts.consumer_ms.count, counts.consumer_ms.total) == (1, 4000)


def test_a_change_that_was_undone_is_not_counted_again() -> None:
    counts, group = GroupCounts(Registry()), ConsumerGroup("g")
    group.put(member("a", 5))
    group.epoch = group.target_epoch = group.watched_epoch = 5
    group.epoch = 6
    watch_rebalance(group, counts, 1000)
    group.epoch = 5
    watch_rebalance(group, counts, 1500)
    assert counts.consumer_rebalances.value == 1
    assert group.rebalance_began_ms == -1


def test_a_group_without_members_is_not_rebalancing() -> None:
    counts, group = GroupCounts(Registry()), ConsumerGroup("g")
    group.epoch = group.target_epoch = 2
    watch_rebalance(group, counts, 1000)
    assert (group.rebalance_began_ms, counts.consumer_ms.count) == (-1, 0)
