"""Classic members of a consumer group: what their requests mean there (KIP-848).

Such a member never leads: the coordinator assigns. Its generation is its epoch. JoinGroup is the
full heartbeat, SyncGroup returns the current assignment, and Heartbeat tells the member to rejoin
whenever there is a step to take towards its target. A client of the cooperative protocol revokes
partitions between two joins; one of the eager protocol, before each.

Timers: ("sync", group, member) removes a member that joined and does not ask for its assignment,
("rejoin", group, member) one that was told to rejoin and does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from barnabas.groups.call import Call, answered
from barnabas.groups.classic import rebalance_timeout_ms
from barnabas.groups.classic_rebalances import join_refusal
from barnabas.groups.consumer import ConsumerProtocol, too_slow
from barnabas.groups.consumer_group import (
    LEFT_FOR_A_WHILE,
    ClassicSide,
    ConsumerGroup,
    ConsumerMember,
)
from barnabas.groups.migration import by_id, classic_assignment, read_subscription
from barnabas.groups.options import GroupOptions
from barnabas.groups.reconciliation import NONE, MemberState
from barnabas.groups.topics import Topics
from barnabas.model.error_codes import ErrorCode
from barnabas.model.outcome import Outcome, Reply, TimerChange
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class ClassicBridge:
    """Answers classic members of consumer groups, which are its arguments."""

    def __init__(
        self,
        options: GroupOptions,
        consumer: ConsumerProtocol,
        new_id: Callable[[], str],
        topics: Callable[[], Topics],
    ) -> None:
        self._options = options
        self._consumer = consumer
        self._new_id = new_id
        self._topics = topics

    # -- joining

    def join(self, group: ConsumerGroup, request: JoinGroupRequest, call: Call) -> Outcome:
        """Update a member from its request, and move it one step towards its target."""
        error = self._join_error(group, request)
        said = None
        if error is ErrorCode.NONE:
            said = read_subscription(request.member_id, request.protocols[0].metadata)
        if said is None:
            error = error or ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            return answered(call, join_refusal(call.version, request.member_id, error))
        member_id = request.member_id
        if member_id == "":
            name = request.group_instance_id or call.client_id
            member_id = f"{name}-{self._new_id()}"
            if request.group_instance_id is None and call.version >= 4:
                code = ErrorCode.MEMBER_ID_REQUIRED
                return answered(call, join_refusal(call.version, member_id, code))
        out = Outcome()
        number, before = group.changes + 1, group.snapshot()
        member = group.members.get(member_id)
        if member is None:
            member = self._consumer.admit(group, member_id, request.group_instance_id, out)
        updated = replace(
            member,
            rack_id=said.rack_id,
            client_id=call.client_id,
            client_host=call.client_host,
            topics=tuple(sorted(set(said.topics))),
            regex=None,
            rebalance_timeout_ms=rebalance_timeout_ms(request),
            assignor=None,
            classic=ClassicSide(
                request.session_timeout_ms,
                tuple((item.name, item.metadata) for item in request.protocols),
            ),
        )
        owned = by_id(list(said.owned), self._topics()) if said.owned else NONE
        member = self._consumer.progress(group, updated, owned, call.now_ms, out)
        out.replies.append(
            Reply(
                call.token,
                JoinGroupResponse(
                    generation_id=member.current.epoch,
                    protocol_type=group.protocol_type,
                    protocol_name=request.protocols[0].name,
                    leader="",
                    member_id=member_id,
                ),
            )
        )
        self._consumer.undoable(
            group, number, before, out, lambda code: join_refusal(call.version, "", code)
        )
        self._consumer.keep_alive(group, member, call.now_ms, out)
        group.called.discard(member_id)
        out.timers.append(TimerChange(("rejoin", group.group_id, member_id), None))
        deadline_ms = call.now_ms + member.rebalance_timeout_ms
        out.timers.append(TimerChange(("sync", group.group_id, member_id), deadline_ms))
        return out

    def _join_error(self, group: ConsumerGroup, request: JoinGroupRequest) -> ErrorCode:
        options = self._options
        member_id, instance_id = request.member_id, request.group_instance_id
        if not (
            options.session_timeout_ms_min
            <= request.session_timeout_ms
            <= options.session_timeout_ms_max
        ):
            return ErrorCode.INVALID_SESSION_TIMEOUT
        is_known = member_id in group.members or instance_id in group.static
        if not is_known and len(group.members) >= options.consumer_size_max:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        names = [item.name for item in request.protocols]
        if not group.supports_classic(request.protocol_type, names):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if instance_id is not None:
            holder = group.members.get(group.static.get(instance_id, ""))
            if member_id != "":
                if holder is None:
                    return ErrorCode.UNKNOWN_MEMBER_ID
                if holder.member_id != member_id:
                    return ErrorCode.FENCED_INSTANCE_ID
            elif holder is not None and holder.classic is None:
                # A consumer-protocol member keeps its instance id until it is removed.
                is_away = holder.current.epoch == LEFT_FOR_A_WHILE
                return ErrorCode.NONE if is_away else ErrorCode.UNRELEASED_INSTANCE_ID
        member = group.members.get(member_id)
        if member is not None and member.classic is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE

    # -- staying

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest, call: Call) -> Outcome:
        """Return a member's current assignment."""
        error = self._error(
            group, request.member_id, request.group_instance_id, request.generation_id
        )
        if error is not ErrorCode.NONE:
            return answered(call, SyncGroupResponse(error_code=error))
        member = group.members[request.member_id]
        assert member.classic is not None
        names = [name for name, _ in member.classic.protocols]
        if request.protocol_type not in (None, group.protocol_type) or (
            request.protocol_name not in (None, *names)
        ):
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            return answered(call, SyncGroupResponse(error_code=code))
        out = Outcome()
        current = member.current
        if group.epoch > current.epoch and current.state is not MemberState.UNREVOKED:
            self._call_again(group, member, call.now_ms, out)
            response = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        else:
            response = SyncGroupResponse(
                protocol_type=group.protocol_type,
                protocol_name=names[0],
                assignment=classic_assignment(group, member),
            )
            out.timers.append(TimerChange(("sync", group.group_id, member.member_id), None))
            self._consumer.keep_alive(group, member, call.now_ms, out)
        out.replies.append(Reply(call.token, response))
        return out

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest, call: Call) -> Outcome:
        """Keep a member alive, and tell it to rejoin when there is a step to take."""
        error = self._error(
            group, request.member_id, request.group_instance_id, request.generation_id
        )
        if error is not ErrorCode.NONE:
            return answered(call, HeartbeatResponse(error_code=error))
        member = group.members[request.member_id]
        out = Outcome()
        self._consumer.keep_alive(group, member, call.now_ms, out)
        if self._should_rejoin(group, member):
            self._call_again(group, member, call.now_ms, out)
            error = ErrorCode.REBALANCE_IN_PROGRESS
        out.replies.append(Reply(call.token, HeartbeatResponse(error_code=error)))
        return out

    def _should_rejoin(self, group: ConsumerGroup, member: ConsumerMember) -> bool:
        current = member.current
        if current.epoch < group.epoch or current.state is MemberState.UNREVOKED:
            return True
        if current.state is not MemberState.UNRELEASED:
            return False
        missing = group.target.get(member.member_id, NONE) - current.assigned
        return not any(partition in group.holders for partition in missing)

    def _call_again(
        self, group: ConsumerGroup, member: ConsumerMember, now_ms: int, out: Outcome
    ) -> None:
        """Start waiting for a member's next join, unless already waiting."""
        if member.member_id not in group.called:
            group.called.add(member.member_id)
            key = ("rejoin", group.group_id, member.member_id)
            out.timers.append(TimerChange(key, now_ms + member.rebalance_timeout_ms))

    def _error(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        if instance_id is not None:
            holder = group.static.get(instance_id)
            if holder is not None and holder != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        member = group.members.get(member_id)
        if member is None or member.classic is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if generation != member.current.epoch:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.NONE

    # -- time

    def expired(self, group: ConsumerGroup, kind: str, member_id: str, now_ms: int) -> Outcome:
        """Remove a member that did not join or sync in time."""
        member = group.members.get(member_id)
        if member is None or member.classic is None:
            return Outcome()
        again = TimerChange((kind, group.group_id, member_id), now_ms + member.rebalance_timeout_ms)
        trigger = too_slow(member, "sync" if kind == "sync" else "join")
        return self._consumer.give_up(group, trigger, again, now_ms)
