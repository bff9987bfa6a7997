"""Sticky: as balanced as possible, and each member keeps as much as that allows.

Members report their previous assignment in their user data, because an eager member revokes
everything before it rejoins:

    previous assignment   array of (topic string, partitions array of int32)
    generation            int32, missing in data of the first version
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from barnabas.assignment.balance import balance
from barnabas.assignment.contract import Assignment, Member, PartitionCounts, in_order
from barnabas.model.errors import RemoteProtocolError
from barnabas.model.ids import TopicPartition
from barnabas.wire.codec import decode, encode
from barnabas.wire.messages.consumer_protocol import TopicPartition as TopicPartitions
from barnabas.wire.schema import Message, field, message


@message(versions="0-1")
class StickyUserData(Message):
    previous_assignment: list[TopicPartitions] = field([TopicPartitions])
    generation: int = field("int32", versions="1", default=-1, ignorable=True)


class StickyAssignor:
    """Balanced, and sticky across eager rebalances."""

    name = "sticky"
    is_cooperative = False

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes:
        """Return this member's previous assignment, for the leader."""
        topics: dict[str, list[int]] = {}
        for partition in sorted(owned):
            topics.setdefault(partition.topic, []).append(partition.partition)
        data = StickyUserData(
            previous_assignment=[
                TopicPartitions(topic=topic, partitions=numbers)
                for topic, numbers in topics.items()
            ],
            generation=generation,
        )
        return encode(data, 1)

    def assign(self, partition_counts: PartitionCounts, members: Sequence[Member]) -> Assignment:
        """Assign every partition of the subscribed topics."""
        ordered = in_order(members)
        claims = {member.member_id: previous(member) for member in ordered}
        return balance(partition_counts, ordered, settled(claims))


class CooperativeStickyAssignor:
    """Balanced and sticky, while members keep reading what they own.

    A partition that changes owners is left out until its owner has revoked it, which takes a second
    rebalance.
    """

    name = "cooperative-sticky"
    is_cooperative = True

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes:
        """Return the generation, for the leader; owned partitions are in the subscription."""
        return _GENERATION.pack(generation)

    def assign(self, partition_counts: PartitionCounts, members: Sequence[Member]) -> Assignment:
        """Assign every partition that no other member has to revoke first."""
        ordered = in_order(members)
        claims = {member.member_id: _claim(member) for member in ordered}
        assignment = balance(partition_counts, ordered, settled(claims))
        owners: dict[TopicPartition, set[str]] = {}
        for name, (_, partitions) in claims.items():
            for partition in partitions:
                owners.setdefault(partition, set()).add(name)
        return {
            name: [
                partition
                for partition in partitions
                if partition not in owners or name in owners[partition]
            ]
            for name, partitions in assignment.items()
        }


Claim = tuple[int, Sequence[TopicPartition]]
"""The partitions a member claims to own, and since which generation."""

_GENERATION = struct.Struct(">i")


def previous(member: Member) -> Claim:
    """Decode the previous assignment of a member of the sticky assignor."""
    if member.user_data is None:
        return member.generation, member.owned
    for version in (1, 0):
        try:
            data, _ = decode(StickyUserData, member.user_data, version)
        except RemoteProtocolError:
            continue
        partitions = [
            TopicPartition(topic.topic, number)
            for topic in data.previous_assignment
            for number in topic.partitions
        ]
        return data.generation, partitions
    return -1, ()  # user data of another assignor: nothing is known


def settled(claims: Mapping[str, Claim]) -> dict[str, list[TopicPartition]]:
    """Resolve conflicting claims: the later generation wins; of equals, neither."""
    holders: dict[TopicPartition, tuple[int, str | None]] = {}
    for name, (generation, partitions) in claims.items():
        for partition in dict.fromkeys(partitions):
            known = holders.get(partition)
            if known is None or known[0] < generation:
                holders[partition] = (generation, name)
            elif known[0] == generation:
                holders[partition] = (generation, None)
    owned: dict[str, list[TopicPartition]] = {name: [] for name in claims}
    for partition in sorted(holders):
        holder = holders[partition][1]
        if holder is not None:
            owned[holder].append(partition)
    return owned


def _claim(member: Member) -> Claim:
    """Decode a cooperative member's claim; newer subscriptions have the generation themselves."""
    user_data = member.user_data or b""
    if member.generation == -1 and len(user_data) >= _GENERATION.size:
        return _GENERATION.unpack_from(user_data)[0], member.owned
    return member.generation, member.owned
