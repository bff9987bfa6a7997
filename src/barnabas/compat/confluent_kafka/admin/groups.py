"""Groups as listed and described."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.admin import groups as ours
from barnabas.client.metadata import BrokerAddress
from barnabas.compat.confluent_kafka.admin.acls import AclOperation, operations_of
from barnabas.compat.confluent_kafka.admin.topics import node_of
from barnabas.compat.confluent_kafka.cluster_view import BrokerMetadata
from barnabas.compat.confluent_kafka.error import KafkaError
from barnabas.compat.confluent_kafka.model import (
    ConsumerGroupState,
    ConsumerGroupType,
    Node,
)
from barnabas.compat.confluent_kafka.partitions import TopicPartition, from_key
from barnabas.model import ids

STATES: Mapping[ConsumerGroupState, str] = {
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.DEAD: "Dead",
    ConsumerGroupState.EMPTY: "Empty",
}
"""The states on the wire."""

TYPES: Mapping[ConsumerGroupType, str] = {
    ConsumerGroupType.CONSUMER: "consumer",
    ConsumerGroupType.CLASSIC: "classic",
}


class ConsumerGroupListing:
    """A group, in short."""

    def __init__(
        self,
        group_id: str,
        is_simple_consumer_group: bool,
        state: ConsumerGroupState | None = None,
        type: ConsumerGroupType | None = None,
    ) -> None:
        self.group_id = group_id
        self.is_simple_consumer_group = is_simple_consumer_group
        self.state = state
        self.type = type


class ListConsumerGroupsResult:
    """The groups that were listed, and what failed."""

    def __init__(
        self,
        valid: list[ConsumerGroupListing] | None = None,
        errors: list[Exception] | None = None,
    ) -> None:
        self.valid = valid
        self.errors = errors


class MemberAssignment:
    """The partitions of a member."""

    def __init__(self, topic_partitions: list[TopicPartition] | None) -> None:
        self.topic_partitions = topic_partitions or []


class MemberDescription:
    """A member of a group."""

    def __init__(
        self,
        member_id: str,
        client_id: str,
        host: str,
        assignment: MemberAssignment,
        group_instance_id: str | None = None,
        target_assignment: MemberAssignment | None = None,
    ) -> None:
        self.member_id = member_id
        self.client_id = client_id
        self.host = host
        self.assignment = assignment
        self.target_assignment = target_assignment
        self.group_instance_id = group_instance_id


class ConsumerGroupDescription:
    """A group with its members."""

    def __init__(
        self,
        group_id: str,
        is_simple_consumer_group: bool,
        members: list[MemberDescription],
        partition_assignor: str,
        state: ConsumerGroupState | None,
        coordinator: Node | None,
        authorized_operations: Iterable[int | AclOperation] | None = None,
        type: ConsumerGroupType = ConsumerGroupType.UNKNOWN,
    ) -> None:
        self.group_id = group_id
        self.is_simple_consumer_group = is_simple_consumer_group
        self.members = members
        self.authorized_operations = operations_of(authorized_operations)
        self.partition_assignor = partition_assignor
        self.state = state
        self.type = type
        self.coordinator = coordinator


class GroupMember:
    """A member of a group, as `list_groups` returns it."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.client_id: str | None = None
        self.client_host: str | None = None
        self.metadata: bytes | None = None
        self.assignment: bytes | None = None


class GroupMetadata:
    """A group, as `list_groups` returns it."""

    def __init__(self) -> None:
        self.broker: BrokerMetadata | None = None
        self.id: str | None = None
        self.error: KafkaError | None = None
        self.state: str | None = None
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.members: list[GroupMember] = []

    def __repr__(self) -> str:
        error = "" if self.error is None else f", {self.error}"
        return f"GroupMetadata({self.id}{error})"

    def __str__(self) -> str:
        return str(self.id)


def state_of(text: str) -> ConsumerGroupState:
    """Return the state that a broker names."""
    states = {name: state for state, name in STATES.items()}
    return states.get(text, ConsumerGroupState.UNKNOWN)


def type_of(text: str) -> ConsumerGroupType:
    """Return the type that a broker names."""
    types = {name: kind for kind, name in TYPES.items()}
    return types.get(text.lower(), ConsumerGroupType.UNKNOWN)


def listing_of(group: ours.ListedGroup) -> ConsumerGroupListing:
    """Return a group that was listed; one without a protocol has only committed offsets."""
    return ConsumerGroupListing(
        group.name, group.protocol_type == "", state_of(group.state), type_of(group.type)
    )


def description_of(
    group: ours.GroupDescription, brokers: Mapping[int, BrokerAddress]
) -> ConsumerGroupDescription:
    """Return a group that was described."""
    coordinator = brokers.get(group.coordinator_id)
    return ConsumerGroupDescription(
        group.name,
        group.protocol_type == "",
        [
            MemberDescription(
                member.member_id,
                member.client_id,
                member.host,
                _assignment(member.partitions),
                member.instance_id,
                None if member.target is None else _assignment(member.target),
            )
            for member in group.members
        ],
        group.assignor,
        state_of(group.state),
        None if coordinator is None else node_of(coordinator),
        group.authorized_operations,
        type_of(group.type),
    )


def metadata_of(
    group: ours.GroupDescription, brokers: Mapping[int, BrokerAddress]
) -> GroupMetadata:
    """Return a group as `list_groups` does."""
    shown = GroupMetadata()
    coordinator = brokers.get(group.coordinator_id)
    if coordinator is not None:
        shown.broker = BrokerMetadata()
        shown.broker.id = coordinator.node_id
        shown.broker.host, shown.broker.port = coordinator.host, coordinator.port
    shown.id, shown.state = group.name, group.state
    shown.protocol_type, shown.protocol = group.protocol_type, group.assignor
    for member in group.members:
        one = GroupMember()
        one.id, one.client_id, one.client_host = member.member_id, member.client_id, member.host
        one.metadata, one.assignment = member.metadata, member.assignment
        shown.members.append(one)
    return shown


def _assignment(partitions: Iterable[Any] | None) -> MemberAssignment:
    return MemberAssignment([from_key(ids.TopicPartition(*each)) for each in partitions or ()])
