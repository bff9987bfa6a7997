"""The group coordinator: the machine of one partition of `__consumer_offsets`.

    outcome = coordinator.handle_join(request, Call(token, version, now_ms, client_id, host))

It finds the group of a member's request and lets the group's protocol decide (`classic`,
`consumer`). Offsets are separate from both (`offset_table`), because they outlive members and may
belong to a group without any. Its other parts share the tables of groups and offsets:

    offset_requests   commit, fetch and delete offsets
    administration    describe, list and delete groups
    replaying         rebuild the state from the log

State changes immediately, before its records are committed. So the host must not let a response
overtake those of earlier requests to the same partition that still wait for their records: then
no client ever sees a state that a new leader would not know.

A request for several groups (describe, list, delete, fetch) may concern several partitions: the
coordinator answers for one group, and the host combines the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import suppress
from typing import Final

from barnabas.assignment.contract import ServerAssignor
from barnabas.assignment.range import RangeAssignor
from barnabas.assignment.uniform import UniformAssignor
from barnabas.diary import subjects
from barnabas.groups.administration import Administration
from barnabas.groups.bridge import ClassicBridge
from barnabas.groups.call import Call, answered
from barnabas.groups.classic import ClassicProtocol
from barnabas.groups.classic_group import ClassicGroup
from barnabas.groups.classic_rebalances import ClassicRebalances, join_refusal
from barnabas.groups.consumer import ConsumerProtocol, refusal
from barnabas.groups.consumer_group import ConsumerGroup
from barnabas.groups.consumer_request import JOINING, validate
from barnabas.groups.counts import GroupCounts
from barnabas.groups.group import Group, Groups
from barnabas.groups.migration import downgraded, upgrade_records, upgraded
from barnabas.groups.offset_requests import OffsetRequests
from barnabas.groups.offset_table import OffsetTable
from barnabas.groups.options import GroupOptions
from barnabas.groups.rebalance_watch import watch_rebalance
from barnabas.groups.replaying import Replaying
from barnabas.groups.round import Trigger
from barnabas.groups.store_errors import group_error
from barnabas.groups.topics import Topics
from barnabas.metrics.registry import Registry
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RemoteProtocolError, RequestError
from barnabas.model.outcome import Outcome, Reply
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

SERVER_ASSIGNORS: Final = (UniformAssignor(), RangeAssignor())
"""The server-side assignors, for consumer groups."""


class GroupCoordinator:
    """All groups of one partition."""

    def __init__(
        self,
        options: GroupOptions,
        new_id: Callable[[], str],
        topics: Callable[[], Topics],
        assignors: Sequence[ServerAssignor] = SERVER_ASSIGNORS,
        counts: GroupCounts | None = None,
    ) -> None:
        self._options = options
        self._counts = counts = counts or GroupCounts(Registry())
        self._rebalances = ClassicRebalances(options, counts)
        self._classic = ClassicProtocol(options, self._rebalances, new_id)
        self._consumer = ConsumerProtocol(options, new_id, topics, assignors)
        self._bridge = ClassicBridge(options, self._consumer, new_id, topics)
        self._topics = topics
        self.groups: Groups = {}
        self.offsets = OffsetTable(options, topics)
        self.offset_requests = OffsetRequests(self.groups, self.offsets, self._rebalances, counts)
        self.administration = Administration(
            self.groups, self.offsets, options.consumer_assignors[0], counts
        )
        self.replaying = Replaying(self.groups, self.offsets)

    # -- members of classic groups

    def handle_join(self, request: JoinGroupRequest, call: Call) -> Outcome:
        """JoinGroup: join a group or its next generation; often answered much later."""
        group = self.groups.get(request.group_id)
        if request.group_id == "":
            return answered(call, join_refusal(call.version, "", ErrorCode.INVALID_GROUP_ID))
        if isinstance(group, ConsumerGroup) and not group.is_empty:
            return self._settled(group, self._bridge.join(group, request, call), call.now_ms)
        former = None
        if group is None or isinstance(group, ConsumerGroup):
            if request.member_id != "":
                code = ErrorCode.UNKNOWN_MEMBER_ID
                return answered(call, join_refusal(call.version, request.member_id, code))
            former = group
            group = ClassicGroup(request.group_id, call.now_ms)
        outcome = self._classic.join(group, request, call)
        if group.members or group.pending:
            self.groups[request.group_id] = group
            if former is not None:
                self._replaced(former, outcome)
        return outcome

    def handle_sync(self, request: SyncGroupRequest, call: Call) -> Outcome:
        """SyncGroup: provide (as leader) and get the assignment of a generation."""
        if request.group_id == "":
            return answered(call, SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        group = self.groups.get(request.group_id)
        if group is None:
            return answered(call, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        if isinstance(group, ConsumerGroup):
            return self._bridge.sync(group, request, call)
        return self._classic.sync(group, request, call)

    def handle_heartbeat(self, request: HeartbeatRequest, call: Call) -> Outcome:
        """Heartbeat: stay a member, and learn when to rejoin."""
        if request.group_id == "":
            return answered(call, HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        group = self.groups.get(request.group_id)
        if group is None:
            return answered(call, HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        if isinstance(group, ConsumerGroup):
            return self._bridge.heartbeat(group, request, call)
        return self._classic.heartbeat(group, request, call)

    def handle_leave(self, request: LeaveGroupRequest, call: Call) -> Outcome:
        """LeaveGroup: one member for itself (up to version 2), or several by id or instance id."""
        if request.group_id == "":
            return answered(call, LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
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
                code = self._consumer.evict(group, identity, call.now_ms, outcome)
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
            return self._settled(group, outcome, call.now_ms)
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
                    "group.coordinator.rebalance.protocols does not include consumer",
                )
            validate(request, call.version, self._consumer.assignors)
            group = self.groups.get(request.group_id)
            former = None
            if not isinstance(group, ConsumerGroup):
                former = group
                group = self._begun(request, former)
            outcome = self._consumer.heartbeat(group, request, call)
        except RequestError as failure:
            return answered(call, refusal(failure.code, failure.message))
        self.groups[request.group_id] = group
        if former is None:
            return self._settled(group, outcome, call.now_ms)
        if former.is_empty:
            self._replaced(former, outcome)
        else:
            self._upgraded(former, group, call.now_ms, outcome)
        return outcome

    # -- changes of protocol

    def _begun(
        self, request: ConsumerGroupHeartbeatRequest, former: ClassicGroup | None
    ) -> ConsumerGroup:
        """Return the consumer group for a new member to join; raise if there cannot be one."""
        if request.member_epoch == JOINING:
            if former is None or former.is_empty:
                return ConsumerGroup(request.group_id)
            if (
                self._options.migration.upgrades
                and former.is_consumer_group
                and len(former.members) < self._options.consumer_size_max
            ):
                with suppress(RemoteProtocolError):  # not a consumer's subscription
                    return upgraded(former, self._topics())
        raise RequestError(
            ErrorCode.GROUP_ID_NOT_FOUND, f"group {request.group_id} is not a consumer group"
        )

    def _upgraded(
        self, former: ClassicGroup, group: ConsumerGroup, now_ms: int, outcome: Outcome
    ) -> None:
        """Convert a classic group to a consumer group, with its members."""
        as_it_was = upgraded(former, self._topics())
        outcome.records[:0] = upgrade_records(former, as_it_was)
        for member in as_it_was.members.values():
            self._consumer.keep_alive(group, member, now_ms, outcome)
        interrupted = self._rebalances.interrupted(former, ErrorCode.REBALANCE_IN_PROGRESS)
        outcome.note(
            "group.rebalance",
            subjects.group(group.group_id),
            "migration",
            {"generation": group.epoch, "members": len(group.members), "to": "consumer"},
        )
        undo_join = outcome.undo
        assert undo_join is not None, "a new member has joined; the append is pending"

        def undo(code: ErrorCode) -> list[Reply]:
            replies = interrupted + undo_join(code)
            if self.groups.get(former.group_id) is group:
                former.is_join_timed = False  # its timer may have fired without effect meanwhile
                self.groups[former.group_id] = former
            return replies

        outcome.undo = undo
        outcome.replies += interrupted

    def _settled(self, group: ConsumerGroup, outcome: Outcome, now_ms: int) -> Outcome:
        """Convert a group whose last consumer-protocol member has left to a classic one."""
        watch_rebalance(group, self._counts, now_ms)
        if not (
            outcome.records
            and group.is_all_classic
            and self._options.migration.downgrades
            and len(group.members) <= self._options.size_max
        ):
            return outcome
        former, undo_change = group, outcome.undo
        assert undo_change is not None, "a member has left; the append is pending"
        classic = downgraded(former, now_ms)
        outcome.records += [*former.tombstones(), classic.record()]
        self.groups[former.group_id] = classic
        self._rebalances.loaded(classic, now_ms, outcome)
        trigger = Trigger("migration", {"to": "classic"})
        self._rebalances.prepare(classic, trigger, now_ms, outcome)

        def undo(code: ErrorCode) -> list[Reply]:
            replies = undo_change(code)
            if self.groups.get(former.group_id) is classic:
                replies += self._rebalances.unloaded(classic)
                self.groups[former.group_id] = former
            return replies

        outcome.undo = undo
        return outcome

    def _replaced(self, former: Group, outcome: Outcome) -> None:
        """Replace an empty group of the other type; its offsets stay."""
        tombstones = former.tombstones()
        if not tombstones:
            return
        outcome.records[:0] = tombstones
        undo_new, replies_new = outcome.undo, outcome.replies

        def undo(code: ErrorCode) -> list[Reply]:
            replies = replies_new if undo_new is None else undo_new(code)
            if self.groups[former.group_id].is_empty:
                self.groups[former.group_id] = former
            return replies

        outcome.undo = undo

    # -- time and the world

    def on_timer(self, key: Hashable, now_ms: int) -> Outcome:
        """Handle a timer; one of something that no longer exists does nothing."""
        assert isinstance(key, tuple)
        group = self.groups.get(key[1])
        if group is None:
            return Outcome()
        match key, group:
            case ("session", _, member_id), ClassicGroup():
                return self._rebalances.session_expired(group, member_id, now_ms)
            case ("join", _), ClassicGroup():
                return self._rebalances.join_expired(group, now_ms)
            case ("sync", _), ClassicGroup():
                return self._rebalances.sync_expired(group, now_ms)
            case ("session", _, member_id), ConsumerGroup():
                outcome = self._consumer.session_expired(group, member_id, now_ms)
            case ("rebalance", _, member_id), ConsumerGroup():
                outcome = self._consumer.rebalance_expired(group, member_id, now_ms)
            case ("sync" | "rejoin" as kind, _, member_id), ConsumerGroup():
                outcome = self._bridge.expired(group, kind, member_id, now_ms)
            case _:
                return Outcome()  # of a group that was replaced by one of the other type
        assert isinstance(group, ConsumerGroup)
        return self._settled(group, outcome, now_ms)

    def expire_offsets(self, now_ms: int) -> Outcome:
        """Remove expired offsets, and empty groups that have none left."""
        outcome = Outcome()
        undos: list[Callable[[], None]] = []
        gone: Groups = {}
        for group_id, group in list(self.groups.items()):
            rule = group.expiry()
            if rule is not None:
                records, undo_expiry = self.offsets.expire(group_id, rule, now_ms)
                if records:
                    retention_ms = self._options.offsets_retention_ms
                    data = {"offsets": len(records), "retention_ms": retention_ms}
                    outcome.note("offsets.expired", subjects.group(group_id), "retention", data)
                self._counts.offset_expirations.add(len(records))
                outcome.records += records
                undos.append(undo_expiry)
            if group.is_idle and not self.offsets.of(group_id):
                tombstones = group.tombstones()
                if tombstones:
                    outcome.note("group.deleted", subjects.group(group_id), "expired", {})
                outcome.records += tombstones
                gone[group_id] = self.groups.pop(group_id)

        def undo(code: ErrorCode) -> list[Reply]:
            self.groups.update({**gone, **self.groups})
            for step in reversed(undos):
                step()
            return []

        outcome.undo = undo if outcome.records else None
        return outcome

    def topics_deleted(self, names: Collection[str]) -> Outcome:
        """Remove the offsets of deleted topics."""
        records = self.offsets.remove_topics(names)
        self._counts.offset_deletions.add(len(records))
        return Outcome(records=records, undo=(lambda code: []) if records else None)

    # -- loading and unloading

    def on_marker(self, producer_id: int, committed: bool) -> None:
        """A transaction ended in this partition: its offsets become visible or are discarded."""
        self.offsets.end_transaction(producer_id, committed)

    def loaded(self, now_ms: int) -> Outcome:
        """Start the session timers of the members loaded from the log."""
        outcome = Outcome()
        for group_id, group in list(self.groups.items()):
            if group.is_idle and not group.tombstones() and not self.offsets.of(group_id):
                del self.groups[group_id]  # everything it ever had was aborted or deleted
            elif isinstance(group, ClassicGroup):
                self._rebalances.loaded(group, now_ms, outcome)
            else:
                group.watched_epoch = group.epoch
                self._consumer.loaded(group, now_ms, outcome)
        return outcome

    def unload(self) -> list[Reply]:
        """Stop: waiting clients are redirected to the new coordinator."""
        replies: list[Reply] = []
        for group in self.groups.values():
            if isinstance(group, ClassicGroup):
                replies += self._rebalances.unloaded(group)
        self.groups.clear()
        self.offsets.by_group.clear()
        return replies
