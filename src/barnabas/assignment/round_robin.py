"""Round robin: all partitions of all topics are dealt like cards.

A member that does not subscribe to a topic is skipped for its partitions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from barnabas.assignment.contract import (
    Assignment,
    Member,
    PartitionCounts,
    in_order,
    subscribers,
)
from barnabas.model.ids import TopicPartition


class RoundRobinAssignor:
    """One partition after the other, one member after the other."""

    name = "roundrobin"
    is_cooperative = False

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> None:
        """Return nothing: the assignment depends on names and counts only."""

    def assign(self, partition_counts: PartitionCounts, members: Sequence[Member]) -> Assignment:
        """Assign every partition of the subscribed topics."""
        ordered = in_order(members)
        assignment: Assignment = {member.member_id: [] for member in ordered}
        lists = list(assignment.values())
        turn = 0
        for topic, positions in subscribers(partition_counts, ordered).items():
            index = bisect_left(positions, turn)
            for number in range(partition_counts[topic]):
                if index == len(positions):
                    index = 0
                turn = positions[index]
                lists[turn].append(TopicPartition(topic, number))
                index += 1
            turn += 1
        return assignment
