"""What administrators see of groups, and how they delete one."""

from __future__ import annotations

from collections.abc import Collection

from barnabas.groups.call import Call, answered
from barnabas.groups.classic_group import ClassicGroup
from barnabas.groups.consumer_group import ConsumerGroup
from barnabas.groups.describing import (
    describe_classic,
    describe_consumer,
    listed,
    no_classic_group,
    no_consumer_group,
)
from barnabas.groups.group import Groups
from barnabas.groups.offset_table import OffsetTable
from barnabas.groups.store_errors import offset_error
from barnabas.model.error_codes import ErrorCode
from barnabas.model.outcome import Outcome, Reply
from barnabas.wire.messages.consumer_group_describe import (
    DescribedGroup as DescribedConsumerGroup,
)
from barnabas.wire.messages.delete_groups import DeletableGroupResult
from barnabas.wire.messages.describe_groups import DescribedGroup
from barnabas.wire.messages.list_groups import ListedGroup


class Administration:
    """Answers administrators about one coordinator's groups."""

    def __init__(self, groups: Groups, offsets: OffsetTable, default_assignor: str) -> None:
        self._groups = groups
        self._offsets = offsets
        self._default_assignor = default_assignor

    def describe(self, group_id: str, version: int) -> DescribedGroup:
        """DescribeGroups for one group."""
        group = self._groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return describe_classic(group)
        return no_classic_group(group_id, version)

    def describe_consumer(self, group_id: str) -> DescribedConsumerGroup:
        """ConsumerGroupDescribe for one group."""
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return describe_consumer(group, self._default_assignor)
        return no_consumer_group(group_id)

    def list_groups(
        self, states: Collection[str] = (), types: Collection[str] = ()
    ) -> list[ListedGroup]:
        """ListGroups: groups in the given states and of the given types; no filter means all."""
        wanted_states = {state.lower() for state in states}
        wanted_types = {kind.lower() for kind in types}
        return [
            listed(group)
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
        records += group.tombstones()
        del self._groups[group_id]

        def undo(code: ErrorCode) -> list[Reply]:
            self._groups.setdefault(group_id, group)
            undo_remove()
            result = DeletableGroupResult(group_id=group_id, error_code=offset_error(code))
            return [Reply(call.token, result)]

        reply = Reply(call.token, DeletableGroupResult(group_id=group_id))
        return Outcome([reply], records, undo=undo if records else None)
