"""Assignors that were written for kafka-python or aiokafka, used unchanged.

Those libraries agree on a class with `name`, `metadata(topics)`, `assign(cluster, members)` and
`on_assignment(assignment[, generation])`, and differ in what `members` is: a dict by member id, or
a list of entries with a `member_id`. What is passed here is a dict whose keys are strings that also
have the entry's attributes, so both kinds of code can read it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from barnabas.assignment.contract import Member, Share
from barnabas.client.metadata import ClientMetadata
from barnabas.consumer.group.requests import by_topic
from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition

COOPERATIVE = 1
"""kafka-python's number for incremental rebalances."""


class MemberMetadata:
    """A member's subscription, under both libraries' names."""

    def __init__(self, member: Member) -> None:
        self.version = 3
        self.topics = list(member.topics)
        self.subscription = self.topics
        self.user_data = member.user_data or b""
        self.owned_partitions = by_topic(member.owned)
        self.generation_id = member.generation
        self.group_instance_id = member.instance_id
        self.rack_id = member.rack_id


class MemberEntry(str):
    """A member id with the rest of its entry."""

    member_id: str
    group_instance_id: str | None
    metadata: MemberMetadata

    @classmethod
    def of(cls, member: Member) -> MemberEntry:
        """Create the entry of a member."""
        entry = cls(member.member_id)
        entry.member_id = member.member_id
        entry.group_instance_id = member.instance_id
        entry.metadata = MemberMetadata(member)
        return entry


class MemberAssignment:
    """A member's assignment, in the shape of both libraries."""

    version = 0

    def __init__(self, partitions: Sequence[TopicPartition], user_data: bytes | None) -> None:
        self.assigned_partitions = by_topic(partitions)
        self.assignment = self.assigned_partitions
        self.user_data = user_data or b""
        self._partitions = list(partitions)

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions one by one."""
        return list(self._partitions)


class ClusterSeen:
    """The cluster, with the methods that assignors call."""

    def __init__(self, view: ClientMetadata) -> None:
        self._view = view

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return a topic's partitions, None if it is unknown."""
        seen = self._view.topics.get(topic)
        return set(seen.partitions) if seen is not None and seen.partitions else None

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return a topic's partitions that have a leader."""
        numbers = self.partitions_for_topic(topic)
        if numbers is None:
            return None
        return {n for n in numbers if self._view.leader(TopicPartition(topic, n)) is not None}

    def leader_for_partition(self, partition: TopicPartition) -> int | None:
        """Return the node id of a partition's leader."""
        return self._view.leader(TopicPartition(*partition))

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:
        """Return the names of the known topics."""
        return {
            name
            for name, topic in self._view.topics.items()
            if not (exclude_internal_topics and topic.internal)
        }


class ThirdPartyStrategy:
    """An assignor of kafka-python or aiokafka, adapted to ours."""

    def __init__(self, assignor: Any) -> None:
        self._assignor = assignor
        self.name: str = assignor.name
        supported: Iterable[Any] = getattr(assignor, "supported_protocols", tuple)()
        self.is_cooperative = COOPERATIVE in [int(each) for each in supported]
        self._takes_generation = len(inspect.signature(assignor.on_assignment).parameters) > 1

    def user_data(
        self, topics: Sequence[str], owned: Sequence[TopicPartition], generation: int
    ) -> bytes | None:
        """Return the user data of the assignor's metadata."""
        data: bytes | None = self._assignor.metadata(set(topics)).user_data
        return None if data is None else bytes(data)

    def assign(self, cluster: ClientMetadata, members: Sequence[Member]) -> dict[str, Share]:
        """Have the assignor assign for all members."""
        entries = [MemberEntry.of(member) for member in members]
        decided: Mapping[str, Any] = self._assignor.assign(
            ClusterSeen(cluster), {entry: entry.metadata for entry in entries}
        )
        unknown = set(decided) - set(entries)
        if unknown:
            raise InvalidValueError(
                f"assignor {self.name!r} assigned partitions to {sorted(unknown)}, "
                f"the members are {sorted(entries)}"
            )
        return {
            name: Share(_partitions(assignment), getattr(assignment, "user_data", None))
            for name, assignment in decided.items()
        }

    def on_assignment(self, share: Share, generation: int) -> None:
        """Pass on this member's assignment."""
        assignment = MemberAssignment(share.partitions, share.user_data)
        if self._takes_generation:
            self._assignor.on_assignment(assignment, generation)
        else:
            self._assignor.on_assignment(assignment)


def _partitions(assignment: Any) -> list[TopicPartition]:
    listed: Iterable[Any] = (
        assignment.partitions() if hasattr(assignment, "partitions") else assignment
    )
    return [TopicPartition(*each) for each in listed]
