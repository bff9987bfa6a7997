"""Range: for each topic, every member gets a contiguous range.

The first members get one partition more when a topic cannot be divided evenly, in every topic: what
this loses in balance it gains in joins, because equal partitions of equally partitioned topics come
together.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.assignment.contract import (
    Assignment,
    Member,
    PartitionCounts,
    in_order,
    subscribers,
)
from barnabas.model.ids import TopicPartition


class RangeAssignor:
    """Contiguous ranges, topic by topic."""

    name = "range"
    is_cooperative = False

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> None:
        """Nothing: ranges depend on names and counts only."""

    def assign(self, partition_counts: PartitionCounts, members: Sequence[Member]) -> Assignment:
        """Assign every partition of the subscribed topics."""
        ordered = in_order(members)
        assignment: Assignment = {member.member_id: [] for member in ordered}
        lists = list(assignment.values())
        for topic, positions in subscribers(partition_counts, ordered).items():
            share, larger = divmod(partition_counts[topic], len(positions))
            first = 0
            for place, position in enumerate(positions):
                size = share + (place < larger)
                if size == 0:
                    break
                lists[position] += [TopicPartition(topic, n) for n in range(first, first + size)]
                first += size
        return assignment
