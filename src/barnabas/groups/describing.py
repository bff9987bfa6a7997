"""What administrators see of a group: DescribeGroups, ConsumerGroupDescribe, ListGroups."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.groups.classic_group import ClassicGroup, State
from barnabas.groups.consumer_group import ConsumerGroup, ConsumerMember
from barnabas.groups.reconciliation import NONE, IdPartition
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages import consumer_group_describe as consumer
from barnabas.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from barnabas.wire.messages.list_groups import ListedGroup

_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1
"""The types of members, by the protocol that they speak."""


def describe_classic(group: ClassicGroup) -> DescribedGroup:
    """Describe a classic group; assignments are shown only while it is stable."""
    is_stable = group.state is State.STABLE
    members = [
        DescribedGroupMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=member.metadata(group.protocol) if is_stable else b"",
            member_assignment=member.assignment if is_stable else b"",
        )
        for member in group.members.values()
    ]
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if is_stable else "",
        members=members,
    )


def no_classic_group(group_id: str, version: int) -> DescribedGroup:
    """Describe a group that does not exist: as Dead up to version 5."""
    described = DescribedGroup(group_id=group_id, group_state=State.DEAD.value)
    if version >= 6:
        described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        described.error_message = f"group {group_id} is not a classic group"
    return described


def describe_consumer(group: ConsumerGroup, default_assignor: str) -> consumer.DescribedGroup:
    """Describe a consumer group with its members' current and target assignments."""
    return consumer.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.preferred_assignor(default_assignor),
        members=[_described(group, member) for member in group.members.values()],
    )


def no_consumer_group(group_id: str) -> consumer.DescribedGroup:
    """Describe a consumer group that does not exist."""
    return consumer.DescribedGroup(
        group_id=group_id,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"group {group_id} is not a consumer group",
    )


def listed(group: ClassicGroup | ConsumerGroup) -> ListedGroup:
    """Describe a group in one line."""
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state_name,
        group_type=group.type_name,
    )


def _described(group: ConsumerGroup, member: ConsumerMember) -> consumer.Member:
    return consumer.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.current.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(group, member.current.assigned),
        target_assignment=_assignment(group, group.target.get(member.member_id, NONE)),
        member_type=_CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
    )


def _assignment(group: ConsumerGroup, partitions: Iterable[IdPartition]) -> consumer.Assignment:
    topics: dict[str, consumer.TopicPartitions] = {}
    for name, partition in sorted(group.named(partitions)):
        entry = topics.setdefault(
            name, consumer.TopicPartitions(topic_id=partition.topic_id, topic_name=name)
        )
        entry.partitions.append(partition.partition)
    return consumer.Assignment(topic_partitions=list(topics.values()))
