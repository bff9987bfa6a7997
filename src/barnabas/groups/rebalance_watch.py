"""How long rebalances of consumer groups (KIP-848) take: nobody waits for one, it just ends.

A rebalance begins with a new epoch and ends when every member has reached it. Epochs that follow
each other before that are one rebalance.
"""

from __future__ import annotations

from barnabas.groups.consumer_group import ConsumerGroup
from barnabas.groups.counts import GroupCounts

STABLE = "Stable"


def watch_rebalance(group: ConsumerGroup, counts: GroupCounts, now_ms: int) -> None:
    """Look at a group after each of its events; costs two comparisons between rebalances."""
    if group.epoch != group.watched_epoch:
        if group.epoch > group.watched_epoch:  # else the last change was undone
            counts.consumer_rebalances.add(group.epoch - group.watched_epoch)
            if group.rebalance_began_ms < 0:
                group.rebalance_began_ms = now_ms
        group.watched_epoch = group.epoch
    if group.rebalance_began_ms >= 0:
        if not group.members:
            group.rebalance_began_ms = -1  # the last member left: there is nothing to assign
        elif group.state_name == STABLE:
            counts.consumer_ms.record(now_ms - group.rebalance_began_ms)
            group.rebalance_began_ms = -1
