"""The classic group protocol: join, sync, heartbeat, leave, and what happens in time.

    Empty ──join──▶ PreparingRebalance ──all rejoined, or deadline──▶ CompletingRebalance
      ▲                    │    ▲                                          │
      └─────nobody left────┘    └──member comes, goes or changes──┬── leader's sync
                                                                  │        ▼
                                                                  └──── Stable

A generation begins when a join completes. Only two moments are worth a record: the assignment of a
generation (with its members), and that the group is empty. Everything else is soft: members whose
coordinator moved find a stable group again, and rejoin if they must.

Timers are named by tuples: ("session", group, member) for a member's life (or that of an id which
was handed out), ("join", group) for the end of PreparingRebalance, ("sync", group) for the last
moment to ask for an assignment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.groups.call import Call
from barnabas.groups.classic_group import ClassicGroup, ClassicMember, State, Waiting
from barnabas.groups.options import GroupOptions
from barnabas.model.error_codes import ErrorCode
from barnabas.model.outcome import Outcome, Reply, TimerChange
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from barnabas.wire.messages.leave_group import MemberIdentity
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60_000
"""How long a member may wait in its first join. It sends no heartbeats meanwhile, so a client that
went away and came back as somebody else is noticed only by this."""

_STORE_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What members are told when a group cannot be written, by what the log said."""


def session_timer(group_id: str, member_id: str, deadline_ms: int | None) -> TimerChange:
    """Set or cancel the deadline by which a member must be heard of."""
    return TimerChange(("session", group_id, member_id), deadline_ms)


def join_refusal(version: int, member_id: str, code: ErrorCode) -> JoinGroupResponse:
    """Answer a join with an error, in a version."""
    return JoinGroupResponse(
        error_code=code,
        generation_id=-1,
        protocol_name=None if version >= 7 else "",
        member_id=member_id,
    )


class ClassicProtocol:
    """Decides for classic groups; the groups themselves are its arguments."""

    def __init__(self, options: GroupOptions, new_id: Callable[[], str]) -> None:
        self._options = options
        self._new_id = new_id

    # -- joining

    def join(self, group: ClassicGroup, request: JoinGroupRequest, call: Call) -> Outcome:
        """Take part in the next generation: answered when that begins, or refused."""
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
        self._try_complete_join(group, call.now_ms, out)
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
            # Only dynamic members are given an id before they join.
            pending_static = request.group_instance_id is not None
            return ErrorCode.UNKNOWN_MEMBER_ID if pending_static else ErrorCode.NONE
        return group.member_error(member_id, request.group_instance_id)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Tell whether a member may join; while a join is open, who waits first has the place."""
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
        # A client that dies between the two steps leaves an id behind, not a member.
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
            _rebalance_timeout_ms(request),
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
        self._prepare_rebalance(group, call.now_ms, out)

    def _join_known(
        self, group: ClassicGroup, request: JoinGroupRequest, call: Call, out: Outcome
    ) -> None:
        member = group.members[request.member_id]
        is_leader = group.leader == member.member_id
        is_same = member.protocols == [(item.name, item.metadata) for item in request.protocols]
        if group.state is State.COMPLETING and is_same:
            # The answer to its last join may have been lost.
            response = self._joined(group, member, call.version)
            out.replies.append(Reply(call.token, response))
        elif group.state is State.STABLE and is_same and not is_leader:
            response = self._joined(group, member, call.version)
            out.replies.append(Reply(call.token, response))
        else:
            self._update_member(group, member, request)
            self._await_join(group, member.member_id, call, out)
            self._prepare_rebalance(group, call.now_ms, out)

    def _update_member(
        self, group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest
    ) -> None:
        group.update(member, [(item.name, item.metadata) for item in request.protocols])
        member.rebalance_timeout_ms = _rebalance_timeout_ms(request)
        member.session_timeout_ms = request.session_timeout_ms

    def _await_join(self, group: ClassicGroup, member_id: str, call: Call, out: Outcome) -> None:
        """Let a join wait; one that waited for the same member was given up by its sender."""
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
        """Let a static member that started again take the place of its former self."""
        assert request.group_instance_id is not None
        old_leader = group.leader or ""
        member = group.members[group.static[request.group_instance_id]]
        former = (
            member.member_id,
            member.protocols,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
        )
        # The former self's session runs on: it is back if this cannot be written.
        self._refuse_waiting(group, member.member_id, ErrorCode.FENCED_INSTANCE_ID, out)
        group.rename(member, member_id)
        self._update_member(group, member, request)
        self._keep_alive(group, member, call.now_ms, out)
        if group.state is not State.STABLE or group.choose_protocol() != group.protocol:
            self._await_join(group, member_id, call, out)
            self._prepare_rebalance(group, call.now_ms, out)
            return
        response = self._joined(group, member, call.version)
        if call.version >= 9:
            response.skip_assignment = group.leader == member_id
        else:
            # It must not believe that it leads: nobody would take its assignment from it.
            response.leader = old_leader
            response.members = []
        out.replies.append(Reply(call.token, response))
        out.records.append(group.record())

        def undo(code: ErrorCode) -> list[Reply]:
            if group.members.get(member_id) is member:
                group.rename(member, former[0])
                group.update(member, former[1])
                member.rebalance_timeout_ms, member.session_timeout_ms = former[2:]
            refusal = join_refusal(call.version, "", store_error(code))
            return [
                Reply(call.token, refusal) if reply.token == call.token else reply
                for reply in out.replies
            ]

        out.undo = undo

    def _joined(
        self, group: ClassicGroup, member: ClassicMember, version: int
    ) -> JoinGroupResponse:
        """Describe the present generation to a member; the leader learns of the others."""
        members = []
        if group.leader == member.member_id:
            members = [
                JoinGroupResponseMember(
                    member_id=other.member_id,
                    group_instance_id=other.instance_id,
                    metadata=other.metadata(group.protocol),
                )
                for other in group.members.values()
            ]
        return JoinGroupResponse(
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol,
            leader=group.leader or "",
            member_id=member.member_id,
            members=members,
        )

    # -- rounds

    def _prepare_rebalance(self, group: ClassicGroup, now_ms: int, out: Outcome) -> None:
        """Begin a round, if none is being prepared: everybody has to join again."""
        if group.state is State.PREPARING:
            if not group.is_join_timed:
                self._time_join(group, now_ms + group.rebalance_timeout_ms, out)
            return
        if group.state is State.COMPLETING:
            self._fail_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS, now_ms, out)
        out.timers.append(TimerChange(("sync", group.group_id), None))
        if group.state is State.EMPTY:
            delay_ms = self._options.initial_rebalance_delay_ms
            group.initial_ms_left = max(group.rebalance_timeout_ms - delay_ms, 0)
            group.new_member_added = False
        else:
            delay_ms = group.rebalance_timeout_ms
            group.initial_ms_left = None
        group.become(State.PREPARING, now_ms)
        self._time_join(group, now_ms + delay_ms, out)
        if group.initial_ms_left is not None and delay_ms == 0:
            self._complete_join(group, now_ms, out)

    def _time_join(self, group: ClassicGroup, deadline_ms: int, out: Outcome) -> None:
        group.is_join_timed = True
        out.timers.append(TimerChange(("join", group.group_id), deadline_ms))

    def _try_complete_join(self, group: ClassicGroup, now_ms: int, out: Outcome) -> None:
        """End the round early when nobody is missing; a first one always takes its time."""
        if group.state is State.PREPARING and group.initial_ms_left is None and group.all_joined:
            self._complete_join(group, now_ms, out)

    def _complete_join(self, group: ClassicGroup, now_ms: int, out: Outcome) -> None:
        """Begin a generation with those who rejoined; static members may be away for a while."""
        for member in list(group.members.values()):
            if member.member_id not in group.joining and member.instance_id is None:
                out.timers.append(session_timer(group.group_id, member.member_id, None))
                group.remove(member.member_id)
        if group.members and not group.elect_joined_leader():
            # Only absent static members are left: their sessions decide.
            self._time_join(group, now_ms + group.rebalance_timeout_ms, out)
            return
        out.timers.append(TimerChange(("join", group.group_id), None))
        group.is_join_timed = False
        group.initial_ms_left = None
        group.generation += 1
        if not group.members:
            group.protocol = None
            group.become(State.EMPTY, now_ms)
            out.records.append(group.record())
            # Nobody waits for this record; without it the members would be given up anew.
            out.undo = out.undo or (lambda code: out.replies)
            return
        group.protocol = group.choose_protocol()
        group.become(State.COMPLETING, now_ms)
        group.unsynced = dict.fromkeys(group.members)
        for member in group.members.values():
            waiting = group.joining.pop(member.member_id, None)
            if waiting is not None:
                response = self._joined(group, member, waiting.version)
                out.replies.append(Reply(waiting.token, response))
            member.is_new = False
            self._keep_alive(group, member, now_ms, out)
        deadline_ms = now_ms + group.rebalance_timeout_ms
        out.timers.append(TimerChange(("sync", group.group_id), deadline_ms))

    def _fail_syncs(self, group: ClassicGroup, code: ErrorCode, now_ms: int, out: Outcome) -> None:
        """Forget the assignments of a generation that does not come to be."""
        for member in group.members.values():
            member.assignment = b""
            waiting = group.syncing.pop(member.member_id, None)
            if waiting is not None:
                out.replies.append(Reply(waiting.token, SyncGroupResponse(error_code=code)))
                self._keep_alive(group, member, now_ms, out)

    # -- sync

    def sync(self, group: ClassicGroup, request: SyncGroupRequest, call: Call) -> Outcome:
        """Hand out the leader's assignment, or wait for it."""
        out = Outcome()
        error = self._sync_error(group, request)
        if error is not ErrorCode.NONE:
            out.replies.append(Reply(call.token, SyncGroupResponse(error_code=error)))
            return out
        member = group.members[request.member_id]
        group.unsynced.pop(member.member_id, None)
        if group.state is State.STABLE:
            out.replies.append(Reply(call.token, self._synced(group, member)))
            self._keep_alive(group, member, call.now_ms, out)
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

    def _synced(self, group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
        return SyncGroupResponse(
            protocol_type=group.protocol_type,
            protocol_name=group.protocol,
            assignment=member.assignment,
        )

    def _assign(
        self, group: ClassicGroup, request: SyncGroupRequest, now_ms: int, out: Outcome
    ) -> None:
        """Store what the leader decided and tell everybody; whom it forgot gets nothing."""
        assignments = {item.member_id: item.assignment for item in request.assignments}
        refusals = list(out.replies)
        told = []
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            waiting = group.syncing.pop(member.member_id, None)
            if waiting is not None:
                told.append(waiting.token)
                out.replies.append(Reply(waiting.token, self._synced(group, member)))
                self._keep_alive(group, member, now_ms, out)
        group.become(State.STABLE, now_ms)
        out.records.append(group.record())
        generation = group.generation

        def undo(code: ErrorCode) -> list[Reply]:
            if group.state is State.STABLE and group.generation == generation:
                # The next join sets the round's deadline; sessions run on meanwhile.
                for member in group.members.values():
                    member.assignment = b""
                group.become(State.PREPARING, now_ms)
                group.initial_ms_left = None
                group.is_join_timed = False
            refusal = SyncGroupResponse(error_code=store_error(code))
            return refusals + [Reply(token, refusal) for token in told]

        out.undo = undo

    # -- staying and leaving

    def heartbeat(self, group: ClassicGroup, request: HeartbeatRequest, call: Call) -> Outcome:
        """Keep a member alive, and tell it when it has to join again."""
        out = Outcome()
        error = self._heartbeat_error(group, request)
        if error is ErrorCode.NONE:
            self._keep_alive(group, group.members[request.member_id], call.now_ms, out)
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
        """Let one member go: itself, or removed by an administrator through its instance id."""
        member_id = identity.member_id
        if member_id in group.pending:
            self._drop_pending(group, member_id, now_ms, out)
            return ErrorCode.NONE
        if member_id == "" and identity.group_instance_id is not None:
            member_id = group.static.get(identity.group_instance_id, "")
        error = group.member_error(member_id, identity.group_instance_id)
        if error is ErrorCode.NONE:
            self._remove_member(group, member_id, now_ms, out)
        return error

    def keep_alive(self, group: ClassicGroup, member_id: str, now_ms: int, out: Outcome) -> None:
        """Count another request of a member (a commit) as a sign of life."""
        member = group.members.get(member_id)
        if member is not None:
            self._keep_alive(group, member, now_ms, out)

    def _keep_alive(
        self, group: ClassicGroup, member: ClassicMember, now_ms: int, out: Outcome
    ) -> None:
        deadline_ms = now_ms + member.session_timeout_ms
        out.timers.append(session_timer(group.group_id, member.member_id, deadline_ms))

    def _remove_member(
        self, group: ClassicGroup, member_id: str, now_ms: int, out: Outcome
    ) -> None:
        self._refuse_waiting(group, member_id, ErrorCode.UNKNOWN_MEMBER_ID, out)
        out.timers.append(session_timer(group.group_id, member_id, None))
        group.remove(member_id)
        if group.state in (State.COMPLETING, State.STABLE):
            self._prepare_rebalance(group, now_ms, out)
        self._try_complete_join(group, now_ms, out)

    def _drop_pending(self, group: ClassicGroup, member_id: str, now_ms: int, out: Outcome) -> None:
        out.timers.append(session_timer(group.group_id, member_id, None))
        group.pending.discard(member_id)
        self._try_complete_join(group, now_ms, out)

    def _refuse_waiting(
        self, group: ClassicGroup, member_id: str, code: ErrorCode, out: Outcome
    ) -> None:
        """Answer what waits for a member that is no more."""
        waiting = group.joining.pop(member_id, None)
        if waiting is not None:
            name = member_id if code is ErrorCode.FENCED_INSTANCE_ID else ""
            out.replies.append(Reply(waiting.token, join_refusal(waiting.version, name, code)))
        waiting = group.syncing.pop(member_id, None)
        if waiting is not None:
            out.replies.append(Reply(waiting.token, SyncGroupResponse(error_code=code)))

    # -- time

    def session_expired(self, group: ClassicGroup, member_id: str, now_ms: int) -> Outcome:
        """Give up a member that was not heard of, unless it waits for us."""
        out = Outcome()
        member = group.members.get(member_id)
        if member_id in group.pending:
            self._drop_pending(group, member_id, now_ms, out)
        elif member is not None:
            waits = member_id in group.joining or member_id in group.syncing
            if member.is_new or not waits:
                self._remove_member(group, member_id, now_ms, out)
        return out

    def join_expired(self, group: ClassicGroup, now_ms: int) -> Outcome:
        """End a round at its deadline; a first round goes on while new members keep coming."""
        out = Outcome()
        if group.state is not State.PREPARING:
            return out
        if group.initial_ms_left and group.new_member_added:
            group.new_member_added = False
            delay_ms = min(self._options.initial_rebalance_delay_ms, group.initial_ms_left)
            group.initial_ms_left -= delay_ms
            self._time_join(group, now_ms + delay_ms, out)
        else:
            self._complete_join(group, now_ms, out)
        return out

    def sync_expired(self, group: ClassicGroup, now_ms: int) -> Outcome:
        """Give up members that did not ask for their assignment in time."""
        out = Outcome()
        if group.state in (State.COMPLETING, State.STABLE) and group.unsynced:
            for member_id in list(group.unsynced):
                out.timers.append(session_timer(group.group_id, member_id, None))
                group.remove(member_id)
            self._prepare_rebalance(group, now_ms, out)
            self._try_complete_join(group, now_ms, out)
        return out

    def loaded(self, group: ClassicGroup, now_ms: int, out: Outcome) -> None:
        """Begin to watch the members of a group that was read from the log."""
        for member in group.members.values():
            self._keep_alive(group, member, now_ms, out)
        if len(group.members) > self._options.size_max:
            self._prepare_rebalance(group, now_ms, out)

    def unloaded(self, group: ClassicGroup) -> list[Reply]:
        """Send waiting members to the coordinator's next place."""
        out = Outcome()
        for member_id, waiting in group.joining.items():
            refusal = join_refusal(waiting.version, member_id, ErrorCode.NOT_COORDINATOR)
            out.replies.append(Reply(waiting.token, refusal))
        for waiting in group.syncing.values():
            refusal_sync = SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
            out.replies.append(Reply(waiting.token, refusal_sync))
        group.joining.clear()
        group.syncing.clear()
        group.state = State.DEAD
        return out.replies


def store_error(code: ErrorCode) -> ErrorCode:
    """Translate the log's error into what a member of a group understands."""
    return _STORE_ERRORS.get(code, code)


def _rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """Return how long a member may take to rejoin; version 0 knew one timeout for both."""
    if request.rebalance_timeout_ms == -1:
        return request.session_timeout_ms
    return request.rebalance_timeout_ms
