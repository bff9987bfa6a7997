"""The classic group protocol: responses to join, sync, heartbeat and leave.

Each response depends on the group's state, which `classic_rebalances` changes. Only two events are
written: the assignment of a generation (with its members), and that the group is empty.
Everything else is soft state: members whose coordinator moved find a stable group again, and rejoin
if they must.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.groups.call import Call
from barnabas.groups.classic_group import ClassicGroup, ClassicMember, State, Waiting
from barnabas.groups.classic_rebalances import (
    ClassicRebalances,
    join_refusal,
    note_end,
    session_timer,
)
from barnabas.groups.options import GroupOptions
from barnabas.groups.round import Trigger, leaving_cause
from barnabas.groups.store_errors import group_error
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RemoteProtocolError
from barnabas.model.outcome import Outcome, Reply
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import MemberIdentity
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.wire.versioned import decode_versioned

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60_000
"""How long a member may wait in its first join. It sends no heartbeats meanwhile, so a client that
disconnected and came back with a new member id is only detected by this."""


class ClassicProtocol:
    """Decides for classic groups, which are its arguments."""

    def __init__(
        self, options: GroupOptions, rebalances: ClassicRebalances, new_id: Callable[[], str]
    ) -> None:
        self._options = options
        self._rebalances = rebalances
        self._new_id = new_id

    # -- joining

    def join(self, group: ClassicGroup, request: JoinGroupRequest, call: Call) -> Outcome:
        """Join the next generation: answered when it begins, or rejected."""
        out = Outcome()
        error = self._join_error(group, request)
        if error is ErrorCode.GROUP_MAX_SIZE_REACHED:
            group.remove(request.member_id)
        if error is not ErrorCode.NONE:
            member_id = "" if error is ErrorCode.GROUP_MAX_SIZE_REACHED else request.member_id
            out.replies.append(Reply(call.token, join_refusal(call.version, member_id, error)))
        elif request.member_id == "":
            self._join_new(group, request, call, out)
        elif request.member_id in group.pending:
            self._add_member(group, request.member_id, request, call, out)
        else:
            self._join_known(group, request, call, out)
        self._rebalances.try_complete(group, call.now_ms, out)
        return out

    def _join_error(self, group: ClassicGroup, request: JoinGroupRequest) -> ErrorCode:
        options = self._options
        member_id = request.member_id
        if not (
            options.session_timeout_ms_min
            <= request.session_timeout_ms
            <= options.session_timeout_ms_max
        ):
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if not self._has_room(group, member_id):
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if group.state is State.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if not group.supports(request.protocol_type, [item.name for item in request.protocols]):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if member_id == "":
            return ErrorCode.NONE
        if member_id in group.pending:
            # Only dynamic members are assigned an id before they join.
            pending_static = request.group_instance_id is not None
            return ErrorCode.UNKNOWN_MEMBER_ID if pending_static else ErrorCode.NONE
        return group.member_error(member_id, request.group_instance_id)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Return whether a member may join; in a full group, those already waiting come first."""
        if group.state is State.PREPARING:
            return member_id in group.joining or len(group.joining) < self._options.size_max
        if group.state in (State.COMPLETING, State.STABLE):
            return member_id in group.members or len(group.members) < self._options.size_max
        return True

    def _join_new(
        self, group: ClassicGroup, request: JoinGroupRequest, call: Call, out: Outcome
    ) -> None:
        instance_id = request.group_instance_id
        if instance_id is not None:
            member_id = f"{instance_id}-{self._new_id()}"
            if instance_id in group.static:
                self._replace_static(group, member_id, request, call, out)
            else:
                self._add_member(group, member_id, request, call, out)
            return
        member_id = f"{call.client_id}-{self._new_id()}"
        if call.version < 4:
            self._add_member(group, member_id, request, call, out)
            return
        # A client that dies between the two steps leaves only an id behind, not a member.
        group.pending.add(member_id)
        deadline_ms = call.now_ms + request.session_timeout_ms
        out.timers.append(session_timer(group.group_id, member_id, deadline_ms))
        response = join_refusal(call.version, member_id, ErrorCode.MEMBER_ID_REQUIRED)
        out.replies.append(Reply(call.token, response))

    def _add_member(
        self,
        group: ClassicGroup,
        member_id: str,
        request: JoinGroupRequest,
        call: Call,
        out: Outcome,
    ) -> None:
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            call.client_id,
            call.client_host,
            rebalance_timeout_ms(request),
            request.session_timeout_ms,
            [(item.name, item.metadata) for item in request.protocols],
            is_new=True,
        )
        if group.state is State.PREPARING and group.generation == 0:
            group.new_member_added = True
        group.add(member, request.protocol_type)
        group.joining[member_id] = Waiting(call.token, call.version)
        deadline_ms = call.now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS
        out.timers.append(session_timer(group.group_id, member_id, deadline_ms))
        joined = Trigger(
            "member-joined",
            {
                "member": member_id,
                "client_id": call.client_id,
                "host": call.client_host.removeprefix("/"),
                "said": request.reason or "",
            },
            joined=(member_id,),
        )
        self._rebalances.prepare(group, joined, call.now_ms, out)

    def _join_known(
        self, group: ClassicGroup, request: JoinGroupRequest, call: Call, out: Outcome
    ) -> None:
        member = group.members[request.member_id]
        is_leader = group.leader == member.member_id
        is_same = member.protocols == [(item.name, item.metadata) for item in request.protocols]
        if group.state is State.COMPLETING and is_same:
            # The response to its last join may have been lost.
            response = self._rebalances.joined(group, member)
            out.replies.append(Reply(call.token, response))
        elif group.state is State.STABLE and is_same and not is_leader:
            response = self._rebalances.joined(group, member)
            out.replies.append(Reply(call.token, response))
        else:
            trigger = rejoining(group, member, request)
            self._update_member(group, member, request)
            self._await_join(group, member.member_id, call, out)
            self._rebalances.prepare(group, trigger, call.now_ms, out)

    def _update_member(
        self, group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest
    ) -> None:
        group.update(member, [(item.name, item.metadata) for item in request.protocols])
        member.rebalance_timeout_ms = rebalance_timeout_ms(request)
        member.session_timeout_ms = request.session_timeout_ms

    def _await_join(self, group: ClassicGroup, member_id: str, call: Call, out: Outcome) -> None:
        """Park a join; an earlier one of the same member was given up by its sender."""
        earlier = group.joining.get(member_id)
        if earlier is not None:
            refusal = join_refusal(earlier.version, member_id, ErrorCode.REBALANCE_IN_PROGRESS)
            out.replies.append(Reply(earlier.token, refusal))
        group.joining[member_id] = Waiting(call.token, call.version)

    def _replace_static(
        self,
        group: ClassicGroup,
        member_id: str,
        request: JoinGroupRequest,
        call: Call,
        out: Outcome,
    ) -> None:
        """Replace a restarted static member's previous instance."""
        assert request.group_instance_id is not None
        old_leader = group.leader or ""
        member = group.members[group.static[request.group_instance_id]]
        former = (
            member.member_id,
            member.protocols,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
        )
        # The previous session keeps running: it is restored if this cannot be written.
        self._rebalances.refuse_waiting(group, member.member_id, ErrorCode.FENCED_INSTANCE_ID, out)
        group.rename(member, member_id)
        self._update_member(group, member, request)
        self._rebalances.keep_member(group, member, call.now_ms, out)
        if group.state is not State.STABLE or group.choose_protocol() != group.protocol:
            self._await_join(group, member_id, call, out)
            data = {"instance": request.group_instance_id, "before": former[0], "after": member_id}
            replaced = Trigger("static-replaced", data)
            self._rebalances.prepare(group, replaced, call.now_ms, out)
            return
        response = self._rebalances.joined(group, member)
        if call.version >= 9:
            response.skip_assignment = group.leader == member_id
        else:
            # It must not consider itself the leader: its assignment would be ignored.
            response.leader = old_leader
            response.members = []
        out.replies.append(Reply(call.token, response))
        out.records.append(group.record())
        replies = out.replies

        def undo(code: ErrorCode) -> list[Reply]:
            if group.members.get(member_id) is member:
                group.rename(member, former[0])
                group.update(member, former[1])
                member.rebalance_timeout_ms, member.session_timeout_ms = former[2:]
            refusal = join_refusal(call.version, "", group_error(code))
            return [
                Reply(call.token, refusal) if reply.token == call.token else reply
                for reply in replies
            ]

        out.undo = undo

    # -- sync

    def sync(self, group: ClassicGroup, request: SyncGroupRequest, call: Call) -> Outcome:
        """Return the leader's assignment, or wait for it."""
        out = Outcome()
        error = self._sync_error(group, request)
        if error is not ErrorCode.NONE:
            out.replies.append(Reply(call.token, SyncGroupResponse(error_code=error)))
            return out
        member = group.members[request.member_id]
        group.unsynced.pop(member.member_id, None)
        if group.state is State.STABLE:
            out.replies.append(Reply(call.token, self._rebalances.synced(group, member)))
            self._rebalances.keep_member(group, member, call.now_ms, out)
            return out
        earlier = group.syncing.get(member.member_id)
        if earlier is not None:
            refusal = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
            out.replies.append(Reply(earlier.token, refusal))
        group.syncing[member.member_id] = Waiting(call.token, call.version)
        if group.leader == member.member_id:
            self._assign(group, request, call.now_ms, out)
        return out

    def _sync_error(self, group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
        if group.state is State.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = group.member_error(request.member_id, request.group_instance_id)
        if error is not ErrorCode.NONE:
            return error
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if request.protocol_type not in (None, group.protocol_type):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if request.protocol_name not in (None, group.protocol):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if group.state is State.PREPARING:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def _assign(
        self, group: ClassicGroup, request: SyncGroupRequest, now_ms: int, out: Outcome
    ) -> None:
        """Store the leader's assignment and answer all members; those left out get nothing."""
        assignments = {item.member_id: item.assignment for item in request.assignments}
        refusals = list(out.replies)
        tokens = []
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            waiting = group.syncing.pop(member.member_id, None)
            if waiting is not None:
                tokens.append(waiting.token)
                out.replies.append(Reply(waiting.token, self._rebalances.synced(group, member)))
                self._rebalances.keep_member(group, member, now_ms, out)
        group.become(State.STABLE, now_ms)
        began_ms = group.rebalance_began_ms
        self._rebalances.completed(group, now_ms)
        out.records.append(group.record())
        generation = group.generation
        ended = group.round
        note_end(group, "group.stable", now_ms, out)

        def undo(code: ErrorCode) -> list[Reply]:
            if group.state is State.STABLE and group.generation == generation:
                # The next join sets the round's deadline; sessions keep running meanwhile.
                for member in group.members.values():
                    member.assignment = b""
                group.become(State.PREPARING, now_ms)
                group.rebalance_began_ms = began_ms
                group.initial_ms_left = None
                group.is_join_timed = False
                group.round = ended
            refusal = SyncGroupResponse(error_code=group_error(code))
            return refusals + [Reply(token, refusal) for token in tokens]

        out.undo = undo

    # -- staying and leaving

    def heartbeat(self, group: ClassicGroup, request: HeartbeatRequest, call: Call) -> Outcome:
        """Keep a member alive, and tell it when it must rejoin."""
        out = Outcome()
        error = self._heartbeat_error(group, request)
        if error is ErrorCode.NONE:
            self._rebalances.keep_member(group, group.members[request.member_id], call.now_ms, out)
            if group.state is State.PREPARING:
                error = ErrorCode.REBALANCE_IN_PROGRESS
        out.replies.append(Reply(call.token, HeartbeatResponse(error_code=error)))
        return out

    def _heartbeat_error(self, group: ClassicGroup, request: HeartbeatRequest) -> ErrorCode:
        if group.state is State.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = group.member_error(request.member_id, request.group_instance_id)
        if error is ErrorCode.NONE and request.generation_id != group.generation:
            error = ErrorCode.ILLEGAL_GENERATION
        return error

    def leave(
        self, group: ClassicGroup, identity: MemberIdentity, now_ms: int, out: Outcome
    ) -> ErrorCode:
        """Remove one member: at its own request, or by an administrator through its instance id."""
        member_id = identity.member_id
        if member_id in group.pending:
            self._rebalances.drop_pending(group, member_id, now_ms, out)
            return ErrorCode.NONE
        if member_id == "" and identity.group_instance_id is not None:
            member_id = group.static.get(identity.group_instance_id, "")
        error = group.member_error(member_id, identity.group_instance_id)
        if error is ErrorCode.NONE:
            cause = leaving_cause(identity.reason, by_instance=identity.member_id == "")
            data = {"member": member_id, "said": identity.reason or ""}
            trigger = Trigger(cause, data, left=(member_id,))
            self._rebalances.remove(group, member_id, trigger, now_ms, out)
        return error


def rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """Return how long a member may take to rejoin; version 0 has one timeout for both."""
    if request.rebalance_timeout_ms == -1:
        return request.session_timeout_ms
    return request.rebalance_timeout_ms


def rejoining(group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest) -> Trigger:
    """Return what a known member triggers that joins again, compared with its last join."""
    data = {
        "member": member.member_id,
        "client_id": member.client_id,
        "host": member.client_host.removeprefix("/"),
        "leader": group.leader == member.member_id,
        "said": request.reason or "",
    }
    before = [name for name, _ in member.protocols]
    after = [item.name for item in request.protocols]
    if before != after:
        return Trigger(
            "protocol-changed", data | {"protocols_before": before, "protocols_after": after}
        )
    if group.is_consumer_group and member.protocols:
        was = _topics(member.protocols[0][1])
        wanted = _topics(request.protocols[0].metadata)
        if was is not None and wanted is not None and was != wanted:
            return Trigger(
                "subscription-changed", data | {"topics_before": was, "topics_after": wanted}
            )
    return Trigger("member-rejoined", data)


def _topics(metadata: bytes) -> list[str] | None:
    """Return the topics of a consumer's subscription; None if it cannot be decoded."""
    try:
        subscription, _ = decode_versioned(ConsumerProtocolSubscription, metadata)
    except RemoteProtocolError:
        return None
    return sorted(set(subscription.topics))
