"""Random: each partition goes to any of its topic's subscribers.

The source of chance is given by the caller: `choose(count)` returns a number below `count`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.assignment.contract import (
    Assignment,
    Member,
    PartitionCounts,
    in_order,
    subscribers,
)
from barnabas.model.ids import TopicPartition


class RandomAssignor:
    """Whoever chance picks."""

    name = "random"
    is_cooperative = False

    def __init__(self, choose: Callable[[int], int]) -> None:
        self._choose = choose

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> None:
        """Nothing: chance has no memory."""

    def assign(self, partition_counts: PartitionCounts, members: Sequence[Member]) -> Assignment:
        """Assign every partition of the subscribed topics."""
        ordered = in_order(members)
        assignment: Assignment = {member.member_id: [] for member in ordered}
        lists = list(assignment.values())
        for topic, positions in subscribers(partition_counts, ordered).items():
            for number in range(partition_counts[topic]):
                position = positions[self._choose(len(positions))]
                lists[position].append(TopicPartition(topic, number))
        return assignment
