"""Random: each partition goes to a random subscriber of its topic.

The caller supplies the source of randomness: `choose(count)` returns a number below `count`.
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
    """A random subscriber for each partition."""

    name = "random"
    is_cooperative = False

    def __init__(self, choose: Callable[[int], int]) -> None:
        self._choose = choose

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> None:
        """Return nothing: a random assignment needs no memory."""

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
