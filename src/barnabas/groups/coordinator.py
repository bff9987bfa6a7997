"""The group coordinator: the machine of one partition of `__consumer_offsets`.

    outcome = coordinator.handle_join(request, Call(token, version, now_ms, client_id, host))

It finds the group that a request is about, lets the group's protocol decide (`classic`,
`consumer`), and keeps offsets apart from both (`offset_table`), because they outlive members and
may belong to nobody's group.

Everything changes at once, before its records are committed. So the host must not let an answer
overtake those of earlier requests to the same partition that still wait for their records: then
nobody is ever told of a state that a new leader would not know.

A request for several groups (describe, list, delete, fetch) may concern several partitions: here
are the answers for one group, and the host puts them together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, Final

from barnabas.assignment.contract import Assignor
from barnabas.assignment.range import RangeAssignor
from barnabas.assignment.uniform import UniformAssignor
from barnabas.groups.call import Call
from barnabas.groups.classic import ClassicProtocol
from barnabas.groups.classic_group import ClassicGroup
from barnabas.groups.consumer import ConsumerProtocol, refusal
from barnabas.groups.consumer_group import ConsumerGroup
from barnabas.groups.consumer_request import validate
from barnabas.groups.describing import (
    describe_classic,
    describe_consumer,
    listed,
    no_classic_group,
    no_consumer_group,
)
from barnabas.groups.fetching import refused
from barnabas.groups.offset_table import (
    OffsetTable,
    Topics,
    refused_commit,
    refused_txn_commit,
)
from barnabas.groups.options import GroupOptions
from barnabas.groups.records import (
    ClassicGroupKey,
    ClassicGroupValue,
    OffsetKey,
    OffsetValue,
    decode_key,
    decode_value,
)
from barnabas.groups.rounds import Rounds, join_refusal
from barnabas.groups.store_errors import group_error, offset_error
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.outcome import Outcome, Reply, StateRecord
from barnabas.wire.messages.consumer_group_describe import (
    DescribedGroup as DescribedConsumerGroup,
)
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.delete_groups import DeletableGroupResult
from barnabas.wire.messages.describe_groups import DescribedGroup
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from barnabas.wire.messages.list_groups import ListedGroup
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from barnabas.wire.schema import Message

Group = ClassicGroup | ConsumerGroup

SERVER_ASSIGNORS: Final = (UniformAssignor(), RangeAssignor())
"""The assignors that run here, for groups whose members leave that to us."""


class GroupCoordinator:
    """All groups of one partition."""

    def __init__(
        self,
        options: GroupOptions,
        new_id: Callable[[], str],
        topics: Callable[[], Topics] = dict,
        assignors: Sequence[Assignor] = SERVER_ASSIGNORS,
    ) -> None:
        self._options = options
        self._rounds = Rounds(options)
        self._classic = ClassicProtocol(options, self._rounds, new_id)
        self._consumer = ConsumerProtocol(options, new_id, topics, assignors)
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetTable(options, topics)

    # -- members of classic groups

    def handle_join(self, request: JoinGroupRequest, call: Call) -> Outcome:
        """JoinGroup: enter a group or its next generation; often answered much later."""
        group = self.groups.get(request.group_id)
        if request.group_id == "":
            return _answer(call, join_refusal(call.version, "", ErrorCode.INVALID_GROUP_ID))
        if isinstance(group, ConsumerGroup) and not group.is_empty:
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            return _answer(call, join_refusal(call.version, request.member_id, code))
        former = None
        if group is None or isinstance(group, ConsumerGroup):
            if request.member_id != "":
                code = ErrorCode.UNKNOWN_MEMBER_ID
                return _answer(call, join_refusal(call.version, request.member_id, code))
            former = group
            group = ClassicGroup(request.group_id, call.now_ms)
        outcome = self._classic.join(group, request, call)
        if group.members or group.pending:
            self.groups[request.group_id] = group
            if former is not None:
                self._replaced(former, outcome)
        return outcome

    def handle_sync(self, request: SyncGroupRequest, call: Call) -> Outcome:
        """SyncGroup: bring (as leader) and get the assignment of a generation."""
        if request.group_id == "":
            return _answer(call, SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        group = self.groups.get(request.group_id)
        if not isinstance(group, ClassicGroup):
            return _answer(call, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        return self._classic.sync(group, request, call)

    def handle_heartbeat(self, request: HeartbeatRequest, call: Call) -> Outcome:
        """Heartbeat: stay a member, and learn when to join again."""
        if request.group_id == "":
            return _answer(call, HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        group = self.groups.get(request.group_id)
        if not isinstance(group, ClassicGroup):
            return _answer(call, HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        return self._classic.heartbeat(group, request, call)

    def handle_leave(self, request: LeaveGroupRequest, call: Call) -> Outcome:
        """LeaveGroup: one member for itself (up to version 2), or several by id or instance id."""
        if request.group_id == "":
            return _answer(call, LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        group = self.groups.get(request.group_id)
        leaving = request.members
        if call.version < 3:
            leaving = [MemberIdentity(member_id=request.member_id)]
        outcome = Outcome()
        answers = []
        for identity in leaving:
            code = ErrorCode.UNKNOWN_MEMBER_ID
            if isinstance(group, ClassicGroup):
                code = self._classic.leave(group, identity, call.now_ms, outcome)
            elif isinstance(group, ConsumerGroup):
                code = self._consumer.evict(group, identity, outcome)
            answers.append(
                MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=code,
                )
            )
        if call.version < 3:
            response = LeaveGroupResponse(error_code=answers[0].error_code)
        else:
            response = LeaveGroupResponse(members=answers)
        outcome.replies.append(Reply(call.token, response))
        if isinstance(group, ConsumerGroup) and outcome.undo is not None:
            restore = outcome.undo

            def undo(code: ErrorCode) -> list[Reply]:
                restore(code)
                return [Reply(call.token, LeaveGroupResponse(error_code=group_error(code)))]

            outcome.undo = undo
        return outcome

    # -- members of consumer groups

    def handle_consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, call: Call
    ) -> Outcome:
        """ConsumerGroupHeartbeat: join, stay in or leave a consumer group."""
        try:
            if not self._options.consumer_protocol:
                raise RequestError(
                    ErrorCode.UNSUPPORTED_VERSION,
                    "group.coordinator.rebalance.protocols does not name consumer",
                )
            validate(request, call.version, self._consumer.assignors)
            group = self.groups.get(request.group_id)
            former = None
            if not isinstance(group, ConsumerGroup):
                may_begin = request.member_epoch == 0 and (group is None or group.is_idle)
                if not may_begin:
                    raise RequestError(
                        ErrorCode.GROUP_ID_NOT_FOUND,
                        f"{request.group_id} is not a consumer group",
                    )
                former = group
                group = ConsumerGroup(request.group_id)
            outcome = self._consumer.heartbeat(group, request, call)
        except RequestError as failure:
            return _answer(call, refusal(failure.code, failure.message))
        self.groups[request.group_id] = group
        if former is not None:
            self._replaced(former, outcome)
        return outcome

    def _replaced(self, former: Group, outcome: Outcome) -> None:
        """Let an empty group of the other type give way; its offsets stay."""
        tombstones = former.tombstones()
        if not tombstones:
            return
        outcome.records[:0] = tombstones
        undo_new = outcome.undo

        def undo(code: ErrorCode) -> list[Reply]:
            replies = outcome.replies if undo_new is None else undo_new(code)
            if self.groups[former.group_id].is_empty:
                self.groups[former.group_id] = former
            return replies

        outcome.undo = undo

    # -- offsets

    def handle_offset_commit(self, request: OffsetCommitRequest, call: Call) -> Outcome:
        """OffsetCommit: by a member of the present generation, or by anybody to an idle group."""
        error = self._commit_error(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            call.version,
            transactional=False,
        )
        if error is not ErrorCode.NONE:
            return _answer(call, refused_commit(request, error))
        outcome = Outcome()
        commits, response = self.offsets.commits(request, call.version, call.now_ms)
        outcome.replies.append(Reply(call.token, response))
        group = self.groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            self._rounds.keep_alive(group, request.member_id, call.now_ms, outcome)
        if commits:
            self._store(request.group_id, commits, None, call, outcome)
        return outcome

    def handle_txn_offset_commit(self, request: TxnOffsetCommitRequest, call: Call) -> Outcome:
        """TxnOffsetCommit: like a commit, but visible only after the transaction's marker."""
        error = self._commit_error(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id,
            call.version,
            transactional=True,
        )
        if error is not ErrorCode.NONE:
            return _answer(call, refused_txn_commit(request, error))
        outcome = Outcome()
        commits, response = self.offsets.txn_commits(request, call.now_ms)
        outcome.replies.append(Reply(call.token, response))
        if commits:
            outcome.producer = (request.producer_id, request.producer_epoch)
            self._store(request.group_id, commits, request.producer_id, call, outcome)
        return outcome

    def fetch_offsets(
        self, asked: OffsetFetchRequestGroup, version: int, require_stable: bool
    ) -> OffsetFetchResponseGroup:
        """OffsetFetch for one group; see `fetching` for requests and responses of all versions."""
        group = self.groups.get(asked.group_id)
        if group is not None:
            error = group.fetch_error(asked.member_id, asked.member_epoch)
            if error is not ErrorCode.NONE:
                return refused(asked, version, error)
        return self.offsets.fetch(asked, version, require_stable)

    def handle_offset_delete(self, request: OffsetDeleteRequest, call: Call) -> Outcome:
        """OffsetDelete: forget offsets of topics that no member reads."""
        group = self.groups.get(request.group_id)
        subscribed: Collection[str] = ()
        error = ErrorCode.NONE
        if group is None:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        elif not group.is_empty:
            topics = group.subscribed_topics()
            if topics is None:
                error = ErrorCode.NON_EMPTY_GROUP
            subscribed = topics or ()
        if error is not ErrorCode.NONE:
            return _answer(call, OffsetDeleteResponse(error_code=error))
        response = OffsetDeleteResponse()
        deleted: list[TopicPartition] = []
        for topic in request.topics:
            is_read = topic.name in subscribed
            code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_read else ErrorCode.NONE
            answer = OffsetDeleteResponseTopic(name=topic.name)
            response.topics.append(answer)
            for asked in topic.partitions:
                answer.partitions.append(
                    OffsetDeleteResponsePartition(
                        partition_index=asked.partition_index, error_code=code
                    )
                )
                if not is_read:
                    deleted.append(TopicPartition(topic.name, asked.partition_index))
        known = self.offsets.of(request.group_id)
        records, undo_remove = self.offsets.remove(
            request.group_id, [partition for partition in deleted if partition in known]
        )

        def undo(code: ErrorCode) -> list[Reply]:
            undo_remove()
            return [Reply(call.token, OffsetDeleteResponse(error_code=offset_error(code)))]

        return Outcome([Reply(call.token, response)], records, undo=undo if records else None)

    # -- administration

    def describe(self, group_id: str, version: int) -> DescribedGroup:
        """DescribeGroups for one group."""
        group = self.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return describe_classic(group)
        return no_classic_group(group_id, version)

    def describe_consumer(self, group_id: str) -> DescribedConsumerGroup:
        """ConsumerGroupDescribe for one group."""
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return describe_consumer(group, self._options.consumer_assignors[0])
        return no_consumer_group(group_id)

    def list_groups(
        self, states: Collection[str] = (), types: Collection[str] = ()
    ) -> list[ListedGroup]:
        """ListGroups: those in some states and of some types; no filter lets all pass."""
        wanted_states = {state.lower() for state in states}
        wanted_types = {kind.lower() for kind in types}
        return [
            listed(group)
            for group in self.groups.values()
            if not wanted_states or group.state_name.lower() in wanted_states
            if not wanted_types or group.type_name in wanted_types
        ]

    def handle_delete(self, group_id: str, call: Call) -> Outcome:
        """DeleteGroups for one group: it and its offsets, if nobody is in it.

        The response is a `DeletableGroupResult`.
        """
        group = self.groups.get(group_id)
        if group is None or not group.is_empty:
            missing = group is None
            code = ErrorCode.GROUP_ID_NOT_FOUND if missing else ErrorCode.NON_EMPTY_GROUP
            return _answer(call, DeletableGroupResult(group_id=group_id, error_code=code))
        records, undo_remove = self.offsets.remove(group_id, self.offsets.of(group_id))
        records += group.tombstones()
        del self.groups[group_id]

        def undo(code: ErrorCode) -> list[Reply]:
            self.groups.setdefault(group_id, group)
            undo_remove()
            result = DeletableGroupResult(group_id=group_id, error_code=offset_error(code))
            return [Reply(call.token, result)]

        reply = Reply(call.token, DeletableGroupResult(group_id=group_id))
        return Outcome([reply], records, undo=undo if records else None)

    # -- time and the world

    def on_timer(self, key: Hashable, now_ms: int) -> Outcome:
        """Do what is due; a timer of something that is no more does nothing."""
        assert isinstance(key, tuple)
        group = self.groups.get(key[1])
        if group is None:
            return Outcome()
        match key, group:
            case ("session", _, member_id), ClassicGroup():
                return self._rounds.session_expired(group, member_id, now_ms)
            case ("join", _), ClassicGroup():
                return self._rounds.join_expired(group, now_ms)
            case ("sync", _), ClassicGroup():
                return self._rounds.sync_expired(group, now_ms)
            case ("session", _, member_id), ConsumerGroup():
                return self._consumer.session_expired(group, member_id, now_ms)
            case ("rebalance", _, member_id), ConsumerGroup():
                return self._consumer.rebalance_expired(group, member_id, now_ms)
            case _:
                return Outcome()  # of a group that gave way to one of the other type

    def expire_offsets(self, now_ms: int) -> Outcome:
        """Forget offsets past their time, and empty groups that have none left."""
        outcome = Outcome()
        undos: list[Callable[[], None]] = []
        gone: dict[str, Group] = {}
        for group_id, group in list(self.groups.items()):
            rule = group.expiry()
            if rule is not None:
                records, undo_expiry = self.offsets.expire(group_id, rule, now_ms)
                outcome.records += records
                undos.append(undo_expiry)
            if group.is_idle and not self.offsets.of(group_id):
                outcome.records += group.tombstones()
                gone[group_id] = self.groups.pop(group_id)

        def undo(code: ErrorCode) -> list[Reply]:
            self.groups.update({**gone, **self.groups})
            for step in reversed(undos):
                step()
            return []

        outcome.undo = undo if outcome.records else None
        return outcome

    def topics_deleted(self, names: Collection[str]) -> Outcome:
        """Forget the offsets of topics that are no more."""
        records = self.offsets.remove_topics(names)
        return Outcome(records=records, undo=(lambda code: []) if records else None)

    # -- loading and unloading

    def replay(self, record: StateRecord, producer_id: int | None = None) -> None:
        """Take over one record of the log, in the log's order.

        A record of a transactional batch names its producer: it counts when `on_marker` says so.
        """
        key = decode_key(record.key)
        if key is None:
            return
        value = None if record.value is None else decode_value(key, record.value)
        match key:
            case OffsetKey():
                assert value is None or isinstance(value, OffsetValue)
                partition = TopicPartition(key.topic, key.partition)
                self.offsets.replay(key.group, partition, value, producer_id)
                if value is not None and key.group not in self.groups:
                    self.groups[key.group] = ClassicGroup(key.group, -1)
            case ClassicGroupKey():
                if isinstance(value, ClassicGroupValue):
                    self.groups[key.group] = ClassicGroup.load(key.group, value)
                elif isinstance(self.groups.get(key.group), ClassicGroup):
                    self._replay_tombstone(key.group)
            case _:
                self._replay_consumer(key, value)

    def _replay_consumer(self, key: Any, value: Message | None) -> None:
        group = self.groups.get(key.group)
        if not isinstance(group, ConsumerGroup):
            if value is None:
                return
            group = self.groups[key.group] = ConsumerGroup(key.group)
        if not group.replay(key, value):
            self._replay_tombstone(key.group)

    def _replay_tombstone(self, group_id: str) -> None:
        del self.groups[group_id]
        if self.offsets.of(group_id):
            self.groups[group_id] = ClassicGroup(group_id, -1)

    def on_marker(self, producer_id: int, committed: bool) -> None:
        """A transaction ended in this partition: its offsets become visible, or vanish."""
        self.offsets.end_transaction(producer_id, committed)

    def loaded(self, now_ms: int) -> Outcome:
        """Begin to watch the members that the log told of."""
        outcome = Outcome()
        for group_id, group in list(self.groups.items()):
            if group.is_idle and not group.tombstones() and not self.offsets.of(group_id):
                del self.groups[group_id]  # all it ever had was aborted or deleted
            elif isinstance(group, ClassicGroup):
                self._rounds.loaded(group, now_ms, outcome)
            else:
                self._consumer.loaded(group, now_ms, outcome)
        return outcome

    def unload(self) -> list[Reply]:
        """End: whoever waits is sent to the coordinator's next place."""
        replies: list[Reply] = []
        for group in self.groups.values():
            if isinstance(group, ClassicGroup):
                replies += self._rounds.unloaded(group)
        self.groups.clear()
        self.offsets.by_group.clear()
        return replies

    # -- inside

    def _commit_error(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        version: int,
        *,
        transactional: bool,
    ) -> ErrorCode:
        group = self.groups.get(group_id)
        if group is None:
            return ErrorCode.ILLEGAL_GENERATION if generation >= 0 else ErrorCode.NONE
        return group.commit_error(
            member_id, instance_id, generation, version, transactional=transactional
        )

    def _store(
        self, group_id: str, commits: Any, producer_id: int | None, call: Call, outcome: Outcome
    ) -> None:
        """Store commits; a group that nobody joined exists by its offsets."""
        if group_id not in self.groups:
            self.groups[group_id] = ClassicGroup(group_id, call.now_ms)
        outcome.records, undo_store = self.offsets.store(group_id, commits, producer_id)
        # Not the outcome itself: with a cycle in it, every commit would wait for the collector.
        replies = outcome.replies

        def undo(code: ErrorCode) -> list[Reply]:
            undo_store()
            for topic in replies[0].response.topics:
                for partition in topic.partitions:
                    if partition.error_code == ErrorCode.NONE:
                        partition.error_code = offset_error(code)
            return replies

        outcome.undo = undo


def _answer(call: Call, response: Any) -> Outcome:
    return Outcome([Reply(call.token, response)])
