"""The data that classic consumers exchange through a group: subscriptions and assignments.

A member's metadata in JoinGroup is a subscription, and SyncGroup returns an assignment; the broker
only passes them on. Topics and owned partitions are written sorted, as the Java client does: equal
subscriptions are then equal bytes, and a rejoin without a change is recognised as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barnabas.assignment.contract import Member, Share
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from barnabas.wire.messages.consumer_protocol import TopicPartition as TopicPartitions
from barnabas.wire.versioned import decode_versioned, encode_versioned


def encode_subscription(member: Member, version: int = 3) -> bytes:
    """Encode a member's subscription, with owned partitions and user data."""
    subscription = ConsumerProtocolSubscription(
        topics=sorted(member.topics),
        user_data=member.user_data,
        owned_partitions=_grouped(member.owned),
        generation_id=member.generation,
        rack_id=member.rack_id,
    )
    return encode_versioned(subscription, version)


def decode_subscription(member_id: str, instance_id: str | None, metadata: bytes) -> Member:
    """Decode the metadata of a member."""
    subscription, _ = decode_versioned(ConsumerProtocolSubscription, metadata)
    return Member(
        member_id,
        subscription.topics,
        instance_id,
        _flat(subscription.owned_partitions),
        subscription.generation_id,
        subscription.user_data,
        subscription.rack_id,
    )


def encode_assignment(
    partitions: Iterable[TopicPartition], user_data: bytes | None = None, version: int = 3
) -> bytes:
    """Encode a member's assignment."""
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=_grouped(partitions), user_data=user_data
    )
    return encode_versioned(assignment, version)


def decode_assignment(data: bytes) -> Share:
    """Decode a member's assignment; empty bytes if the leader left the member out."""
    if not data:
        return Share([])
    assignment, _ = decode_versioned(ConsumerProtocolAssignment, data)
    return Share(_flat(assignment.assigned_partitions), assignment.user_data)


def _grouped(partitions: Iterable[TopicPartition]) -> list[TopicPartitions]:
    topics: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        topics.setdefault(partition.topic, []).append(partition.partition)
    return [TopicPartitions(topic=topic, partitions=numbers) for topic, numbers in topics.items()]


def _flat(topics: Sequence[TopicPartitions]) -> list[TopicPartition]:
    return [TopicPartition(topic.topic, number) for topic in topics for number in topic.partitions]
