"""What an assignor is given and what it returns: the contract for our own and for custom ones.

An assignor is pure: the same members and partition counts give the same assignment, regardless of
the order of the members. Every member is in the result, if only with an empty list, and every
partition of a subscribed topic has exactly one owner. (A cooperative assignor may leave out
partitions that another member has to revoke first.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from barnabas.model.ids import TopicPartition

PartitionCounts: TypeAlias = Mapping[str, int]
"""How many partitions each topic has; topics that do not exist are absent."""

Assignment: TypeAlias = dict[str, list[TopicPartition]]
"""Member id to partitions, sorted."""


class Share(NamedTuple):
    """The assignment of one member, and the user data that the leader's assignor adds."""

    partitions: Sequence[TopicPartition]
    user_data: bytes | None = None


Decision: TypeAlias = Mapping[str, Sequence[TopicPartition] | Share]
"""What an assignor returns: for each member its partitions, or a `Share` with user data."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group, as an assignor sees it."""

    member_id: str
    topics: Sequence[str]
    instance_id: str | None = None
    owned: Sequence[TopicPartition] = ()
    """The partitions it claims to own; used by sticky assignors."""
    generation: int = -1
    """The generation in which it got its partitions."""
    user_data: bytes | None = None
    """The user data that the member's assignor added."""
    rack_id: str | None = None


class Assignor(Protocol):
    """Assigns partitions to members.

    An assignor may also have `on_assignment(partitions, generation[, user_data])`, which every
    member's own assignor is called with when the member gets its share: `user_data` is what the
    leader's assignor put into that member's `Share`, None if nothing.
    """

    @property
    def name(self) -> str:
        """Return the name under which members agree on this assignor."""

    @property
    def is_cooperative(self) -> bool:
        """Return whether members keep their partitions while they rejoin."""

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        """Return the user data of a member's subscription, for the leader's assignor."""

    def assign(self, partition_counts: PartitionCounts, members: Sequence[Member]) -> Decision:
        """Assign every partition of the subscribed topics."""


class ServerAssignor(Assignor, Protocol):
    """An assignor that brokers can use: KIP-848 has no way to send user data to members."""

    def assign(self, partition_counts: PartitionCounts, members: Sequence[Member]) -> Assignment:
        """Assign every partition of the subscribed topics."""


def in_order(members: Iterable[Member]) -> list[Member]:
    """Sort members as Kafka does: static ones by instance id, then the others by member id."""
    return sorted(
        members,
        key=lambda member: (
            member.instance_id is None,
            member.member_id if member.instance_id is None else member.instance_id,
        ),
    )


def subscribers(
    partition_counts: PartitionCounts, members: Sequence[Member]
) -> dict[str, list[int]]:
    """Map each topic, in order of names, to the indexes of its subscribers."""
    found: dict[str, list[int]] = {}
    for position, member in enumerate(members):
        for topic in dict.fromkeys(member.topics):
            found.setdefault(topic, []).append(position)
    return {topic: found[topic] for topic in sorted(found) if partition_counts.get(topic, 0) > 0}
