"""Range: for each topic, every member gets a contiguous range.

The first members get one more partition if a topic cannot be divided evenly, in every topic: this
costs balance but allows joins, because equal partitions of co-partitioned topics go to the same
member.

If the racks of the partitions' replicas are known and make a difference, members first get
partitions of their own racks (KIP-881), as many as they would have got anyway. Topics with the same
subscribers and the same number of partitions are then dealt together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from barnabas.assignment.contract import (
    Assignment,
    Member,
    PartitionCounts,
    in_order,
    subscribers,
)
from barnabas.model.ids import TopicPartition

Racks: TypeAlias = Mapping[TopicPartition, Collection[str]]
"""The racks of each partition's replicas; unknown partitions are absent."""


class RangeAssignor:
    """Contiguous ranges, topic by topic."""

    name = "range"
    is_cooperative = False

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> None:
        """Return nothing: ranges depend on names, counts and racks only."""

    def assign(
        self,
        partition_counts: PartitionCounts,
        members: Sequence[Member],
        racks: Racks | None = None,
    ) -> Assignment:
        """Assign every partition of the subscribed topics."""
        ordered = in_order(members)
        assignment: Assignment = {member.member_id: [] for member in ordered}
        together: dict[tuple[int, ...], list[_Topic]] = {}
        for topic, positions in subscribers(partition_counts, ordered).items():
            readers = [ordered[position] for position in positions]
            dealt = _Topic(topic, partition_counts[topic], readers, racks or {})
            together.setdefault((dealt.count, *positions), []).append(dealt)
        for topics in together.values():
            _deal(topics)
        for dealt in sorted((t for topics in together.values() for t in topics), key=_name):
            for member_id, numbers in dealt.given.items():
                assignment[member_id] += [TopicPartition(dealt.name, n) for n in sorted(numbers)]
        return assignment


class _Topic:
    """One topic while it is dealt."""

    def __init__(self, name: str, count: int, readers: list[Member], racks: Racks) -> None:
        self.name = name
        self.count = count
        self.readers = readers
        self.given: defaultdict[str, list[int]] = defaultdict(list)
        self.left = dict.fromkeys(range(count))
        self._share, self._larger = divmod(count, len(readers))
        self._racks: list[frozenset[str]] = []
        if racks:
            self._racks = [frozenset(racks.get(TopicPartition(name, n), ())) for n in range(count)]

    @property
    def is_rack_aware(self) -> bool:
        """Return whether racks make a difference: some subscriber is near some partitions only."""
        everywhere: frozenset[str] = frozenset().union(*self._racks)
        return any(member.rack_id in everywhere for member in self.readers) and any(
            racks != everywhere for racks in self._racks
        )

    def is_near(self, member: Member, number: int) -> bool:
        return member.rack_id in self._racks[number]

    def room(self, member: Member) -> int:
        """Return how many partitions a member may still get; negative beyond its share."""
        return self._share + (self._larger > 0) - len(self.given[member.member_id])

    def give(self, member: Member, numbers: Iterable[int]) -> None:
        given = self.given[member.member_id]
        had_more = len(given) > self._share
        for number in numbers:
            del self.left[number]
            given.append(number)
        if len(given) > self._share and not had_more:
            self._larger -= 1

    def deal_near(self) -> None:
        """Give members in turn partitions of their own rack, up to their share."""
        for member in self.readers:
            near = (number for number in self.left if self.is_near(member, number))
            self.give(member, list(islice(near, max(self.room(member), 0))))

    def deal_rest(self) -> None:
        """Give members in turn the remaining partitions, up to their share."""
        rest = iter(list(self.left))
        for member in self.readers:
            if not self.left:
                break
            self.give(member, islice(rest, max(self.room(member), 0)))


def _deal(topics: list[_Topic]) -> None:
    """Deal topics with the same subscribers and the same number of partitions."""
    if any(topic.is_rack_aware for topic in topics):
        if len(topics) > 1:
            _deal_together(topics)
        for topic in topics:
            topic.deal_near()
    for topic in topics:
        topic.deal_rest()


def _deal_together(topics: list[_Topic]) -> None:
    """Give equal partitions of all topics to one member that is near all of them."""
    for number in range(topics[0].count):
        for member in topics[0].readers:
            if all(topic.is_near(member, number) and topic.room(member) > 0 for topic in topics):
                for topic in topics:
                    topic.give(member, [number])
                break


def _name(topic: _Topic) -> str:
    return topic.name
