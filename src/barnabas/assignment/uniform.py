"""Uniform: what the broker uses for consumer groups (KIP-848): balanced, and sticky.

The broker knows what it assigned last, so members need not claim anything: `owned` is the member's
part of the current target assignment.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.assignment.balance import balance
from barnabas.assignment.contract import Assignment, Member, PartitionCounts, in_order
from barnabas.model.ids import TopicPartition


class UniformAssignor:
    """Balanced, and sticky with respect to the last target."""

    name = "uniform"
    is_cooperative = True

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> None:
        """Return nothing: the broker remembers."""

    def assign(self, partition_counts: PartitionCounts, members: Sequence[Member]) -> Assignment:
        """Assign every partition of the subscribed topics."""
        ordered = in_order(members)
        return balance(
            partition_counts, ordered, {member.member_id: member.owned for member in ordered}
        )
