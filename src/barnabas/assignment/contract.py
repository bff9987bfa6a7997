"""What an assignor is given and what it answers: the contract for our own and for custom ones.

An assignor is pure: the same members and partition counts give the same assignment, in whatever
order the members come. Every member is in the answer, if only with an empty list, and every
partition of a topic that somebody subscribes to has exactly one owner. (A cooperative assignor may
leave out partitions that another member has to give back first.)
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
    """What one member gets, and what the leader's assignor adds for it."""

    partitions: Sequence[TopicPartition]
    user_data: bytes | None = None


Decision: TypeAlias = Mapping[str, Sequence[TopicPartition] | Share]
"""What an assignor answers: for each member its partitions, or a `Share` of them and more."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group, as an assignor sees it."""

    member_id: str
    topics: Sequence[str]
    instance_id: str | None = None
    owned: Sequence[TopicPartition] = ()
    """What it says it has; believed by assignors that want to leave it there."""
    generation: int = -1
    """The generation in which it got what it owns."""
    user_data: bytes | None = None
    """What the same assignor added on the member's side."""
    rack_id: str | None = None


class Assignor(Protocol):
    """Decides who reads what.

    An assignor may also have `on_assignment(partitions, generation[, user_data])`, which every
    member's own assignor is called with when the member gets its share: `user_data` is what the
    leader's assignor put into that member's `Share`, None if nothing.
    """

    @property
    def name(self) -> str:
        """Return the name under which members agree on this assignor."""

    @property
    def is_cooperative(self) -> bool:
        """Tell whether members keep what they own while they rejoin."""

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        """Return what a member adds to its subscription for the leader's assignor."""

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
    """Map each topic, in order of names, to the positions of the members that subscribe to it."""
    found: dict[str, list[int]] = {}
    for position, member in enumerate(members):
        for topic in dict.fromkeys(member.topics):
            found.setdefault(topic, []).append(position)
    return {topic: found[topic] for topic in sorted(found) if partition_counts.get(topic, 0) > 0}
