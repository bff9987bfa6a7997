"""What administrators see of groups, and how they delete one.

DescribeGroups, ConsumerGroupDescribe, ListGroups and DeleteGroups, each for the groups of one
partition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from barnabas.diary import subjects
from barnabas.groups.call import Call, answered
from barnabas.groups.classic_group import ClassicGroup, State
from barnabas.groups.consumer_group import ConsumerGroup, ConsumerMember
from barnabas.groups.counts import GroupCounts
from barnabas.groups.group import Groups
from barnabas.groups.offset_table import OffsetTable
from barnabas.groups.reconciliation import NONE, IdPartition
from barnabas.groups.store_errors import offset_error
from barnabas.model.error_codes import ErrorCode
from barnabas.model.outcome import Outcome, Reply
from barnabas.wire.messages import consumer_group_describe as consumer
from barnabas.wire.messages.consumer_group_describe import (
    DescribedGroup as DescribedConsumerGroup,
)
from barnabas.wire.messages.delete_groups import DeletableGroupResult
from barnabas.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from barnabas.wire.messages.list_groups import ListedGroup


class Administration:
    """Answers administrators about one coordinator's groups."""

    def __init__(
        self,
        groups: Groups,
        offsets: OffsetTable,
        default_assignor: str,
        counts: GroupCounts,
    ) -> None:
        self._groups = groups
        self._offsets = offsets
        self._default_assignor = default_assignor
        self._counts = counts

    def describe(self, group_id: str, version: int) -> DescribedGroup:
        """DescribeGroups for one group."""
        group = self._groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return _describe_classic(group)
        return _no_classic_group(group_id, version)

    def describe_consumer(self, group_id: str) -> DescribedConsumerGroup:
        """ConsumerGroupDescribe for one group."""
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return _describe_consumer(group, self._default_assignor)
        return _no_consumer_group(group_id)

    def list_groups(
        self, states: Collection[str] = (), types: Collection[str] = ()
    ) -> list[ListedGroup]:
        """ListGroups: groups in the given states and of the given types; no filter means all."""
        wanted_states = {state.lower() for state in states}
        wanted_types = {kind.lower() for kind in types}
        return [
            _listed(group)
            for group in self._groups.values()
            if not wanted_states or group.state_name.lower() in wanted_states
            if not wanted_types or group.type_name in wanted_types
        ]

    def handle_delete(self, group_id: str, call: Call) -> Outcome:
        """DeleteGroups for one group: it and its offsets, if it has no members.

        The response is a `DeletableGroupResult`.
        """
        group = self._groups.get(group_id)
        if group is None or not group.is_empty:
            missing = group is None
            code = ErrorCode.GROUP_ID_NOT_FOUND if missing else ErrorCode.NON_EMPTY_GROUP
            return answered(call, DeletableGroupResult(group_id=group_id, error_code=code))
        records, undo_remove = self._offsets.remove(group_id, self._offsets.of(group_id))
        self._counts.offset_deletions.add(len(records))
        del self._groups[group_id]
        offsets = len(records)
        records += group.tombstones()

        def undo(code: ErrorCode) -> list[Reply]:
            self._groups.setdefault(group_id, group)
            undo_remove()
            result = DeletableGroupResult(group_id=group_id, error_code=offset_error(code))
            return [Reply(call.token, result)]

        reply = Reply(call.token, DeletableGroupResult(group_id=group_id))
        outcome = Outcome([reply], records, undo=undo if records else None)
        by = {"client_id": call.client_id, "host": call.client_host.removeprefix("/")}
        outcome.note(
            "group.deleted", subjects.group(group_id), "client", {"offsets": offsets, **by}
        )
        return outcome


_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1
"""The types of members, by the protocol that they speak."""


def _describe_classic(group: ClassicGroup) -> DescribedGroup:
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


def _no_classic_group(group_id: str, version: int) -> DescribedGroup:
    """Describe a group that does not exist: as Dead up to version 5."""
    described = DescribedGroup(group_id=group_id, group_state=State.DEAD.value)
    if version >= 6:
        described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        described.error_message = f"group {group_id} is not a classic group"
    return described


def _describe_consumer(group: ConsumerGroup, default_assignor: str) -> consumer.DescribedGroup:
    """Describe a consumer group with its members' current and target assignments."""
    return consumer.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.preferred_assignor(default_assignor),
        members=[_described(group, member) for member in group.members.values()],
    )


def _no_consumer_group(group_id: str) -> consumer.DescribedGroup:
    """Describe a consumer group that does not exist."""
    return consumer.DescribedGroup(
        group_id=group_id,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"group {group_id} is not a consumer group",
    )


def _listed(group: ClassicGroup | ConsumerGroup) -> ListedGroup:
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
