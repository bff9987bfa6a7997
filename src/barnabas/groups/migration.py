"""Online migration of groups between the protocols (KIP-848).

A consumer-protocol member that joins a classic group of consumers makes it a consumer group; when
the last one leaves and classic members stay, it becomes a classic group again. The generation of
one continues as the epoch of the other, so members are neither fenced nor notified twice, and every
member keeps what it reads.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.assignment.contract import Member
from barnabas.assignment.embedded import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from barnabas.groups.classic_group import ClassicGroup, ClassicMember, State
from barnabas.groups.consumer_group import ClassicSide, ConsumerGroup, ConsumerMember
from barnabas.groups.reconciliation import Current, IdPartition, MemberState, Partitions
from barnabas.groups.topics import Topics
from barnabas.model.errors import RemoteProtocolError
from barnabas.model.ids import TopicPartition
from barnabas.model.outcome import StateRecord


def upgraded(group: ClassicGroup, topics: Topics) -> ConsumerGroup:
    """Return a consumer group in which all members keep their assignments.

    Raises RemoteProtocolError if a member's subscription cannot be decoded.
    """
    generation = group.generation
    new = ConsumerGroup(
        group.group_id, epoch=generation, target_epoch=generation, watched_epoch=generation
    )
    for member in group.members.values():
        metadata = member.metadata(group.protocol) or member.protocols[0][1]
        said = decode_subscription(member.member_id, member.instance_id, metadata)
        held = by_id(decode_assignment(member.assignment).partitions, topics)
        new.put(
            ConsumerMember(
                member.member_id,
                member.instance_id,
                said.rack_id,
                member.client_id,
                member.client_host,
                tuple(sorted(set(said.topics))),
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                current=Current(
                    group.generation, group.generation, MemberState.STABLE, assigned=held
                ),
                classic=ClassicSide(member.session_timeout_ms, tuple(member.protocols)),
            )
        )
        new.target[member.member_id] = held
    return new


def upgrade_records(former: ClassicGroup, new: ConsumerGroup) -> list[StateRecord]:
    """Return the records that convert one group to the other."""
    members = new.members.values()
    return [
        *former.tombstones(),
        *(new.member_record(member) for member in members),
        new.epoch_record(),
        *(new.target_record(member.member_id) for member in members),
        new.target_epoch_record(),
        *(new.current_record(member) for member in members),
    ]


def downgraded(group: ConsumerGroup, now_ms: int) -> ClassicGroup:
    """Return a stable classic group in which all members keep their assignments."""
    new = ClassicGroup(group.group_id, now_ms, State.STABLE, generation=group.epoch)
    for member in group.members.values():
        assert member.classic is not None, (
            "only a group of classic members can become a classic group"
        )
        new.add(
            ClassicMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.classic.session_timeout_ms,
                list(member.classic.protocols),
                classic_assignment(group, member),
            ),
            group.protocol_type,
        )
    new.protocol = new.choose_protocol()
    return new


def read_subscription(member_id: str, metadata: bytes) -> Member | None:
    """Decode a classic consumer's subscription; None if that is not possible."""
    try:
        return decode_subscription(member_id, None, metadata)
    except RemoteProtocolError:
        return None


def classic_assignment(group: ConsumerGroup, member: ConsumerMember) -> bytes:
    """Encode a member's assignment for its classic client."""
    assert member.classic is not None
    # Each side's versions are the same, and a client reads the one that it writes.
    version = int.from_bytes(member.classic.protocols[0][1][:2], "big", signed=True)
    return encode_assignment(
        [
            TopicPartition(name, partition.partition)
            for name, partition in group.named(member.current.assigned)
        ],
        version=min(max(version, 0), 3),
    )


def by_id(partitions: Iterable[TopicPartition], topics: Topics) -> Partitions:
    """Map partitions to topic ids; those of deleted topics are left out."""
    return frozenset(
        IdPartition(topics[topic][0], number) for topic, number in partitions if topic in topics
    )
