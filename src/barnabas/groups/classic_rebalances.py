"""Rebalances of classic groups: how a generation begins, and the timeouts of members.

    Empty ──join──▶ PreparingRebalance ──all rejoined, or deadline──▶ CompletingRebalance
      ▲                    │    ▲                                          │
      └─────nobody left────┘    └──member joins, leaves, changes──┬── leader's sync
                                                                  │        ▼
                                                                  └──── Stable

A generation begins when a join completes. Timers are named by tuples: ("session", group, member)
for a member's session (or an assigned id that has not joined yet), ("join", group) for the end of
PreparingRebalance, ("sync", group) for the deadline to ask for an assignment.
"""

from __future__ import annotations

from barnabas.diary import subjects
from barnabas.groups.classic_group import ClassicGroup, ClassicMember, State
from barnabas.groups.counts import GroupCounts
from barnabas.groups.options import GroupOptions
from barnabas.groups.round import Round, Trigger, named
from barnabas.model.error_codes import ErrorCode
from barnabas.model.outcome import Outcome, Reply, TimerChange
from barnabas.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from barnabas.wire.messages.sync_group import SyncGroupResponse


def session_timer(group_id: str, member_id: str, deadline_ms: int | None) -> TimerChange:
    """Set or cancel the session timeout of a member."""
    return TimerChange(("session", group_id, member_id), deadline_ms)


def join_refusal(version: int, member_id: str, code: ErrorCode) -> JoinGroupResponse:
    """Build the error response to a join, in a version."""
    return JoinGroupResponse(
        error_code=code,
        generation_id=-1,
        protocol_name=None if version >= 7 else "",
        member_id=member_id,
    )


class ClassicRebalances:
    """Moves classic groups from one generation to the next."""

    def __init__(self, options: GroupOptions, counts: GroupCounts) -> None:
        self._options = options
        self._counts = counts

    # -- responses about a generation

    def joined(self, group: ClassicGroup, member: ClassicMember) -> JoinGroupResponse:
        """Describe the current generation to a member; the leader gets all members."""
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

    def synced(self, group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
        """Return a member's assignment in the current generation."""
        return SyncGroupResponse(
            protocol_type=group.protocol_type,
            protocol_name=group.protocol,
            assignment=member.assignment,
        )

    # -- the round

    def prepare(self, group: ClassicGroup, trigger: Trigger, now_ms: int, out: Outcome) -> None:
        """Begin a rebalance, unless one is being prepared: all members must rejoin."""
        if group.round is None:
            group.round = Round.begun(trigger, now_ms, len(group.members))
        group.round.add(trigger)
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
        _note_rebalance(group, trigger, out)
        if group.rebalance_began_ms < 0:
            group.rebalance_began_ms = now_ms
        group.become(State.PREPARING, now_ms)
        self._time_join(group, now_ms + delay_ms, out)
        if group.initial_ms_left is not None and delay_ms == 0:
            self._complete(group, now_ms, out)

    def _time_join(self, group: ClassicGroup, deadline_ms: int, out: Outcome) -> None:
        group.is_join_timed = True
        out.timers.append(TimerChange(("join", group.group_id), deadline_ms))

    def try_complete(self, group: ClassicGroup, now_ms: int, out: Outcome) -> None:
        """Complete a join early when all members have rejoined; never the first one."""
        if group.state is State.PREPARING and group.initial_ms_left is None and group.all_joined:
            self._complete(group, now_ms, out)

    def _complete(self, group: ClassicGroup, now_ms: int, out: Outcome) -> None:
        """Begin a generation with the members that rejoined; static members may be absent."""
        missing = [
            member.member_id
            for member in group.members.values()
            if member.member_id not in group.joining and member.instance_id is None
        ]
        if missing:
            self._give_up(group, missing, out)
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
            group.rebalance_began_ms = -1
            group.become(State.EMPTY, now_ms)
            note_end(group, "group.empty", now_ms, out)
            out.records.append(group.record())
            # Nobody waits for this record; without it the members would be removed again.
            replies = out.replies
            out.undo = out.undo or (lambda code: replies)
            return
        group.protocol = group.choose_protocol()
        if group.round is not None:
            group.round.joined_ms = now_ms
        group.become(State.COMPLETING, now_ms)
        group.unsynced = dict.fromkeys(group.members)
        for member in group.members.values():
            waiting = group.joining.pop(member.member_id, None)
            if waiting is not None:
                response = self.joined(group, member)
                out.replies.append(Reply(waiting.token, response))
            member.is_new = False
            self.keep_member(group, member, now_ms, out)
        deadline_ms = now_ms + group.rebalance_timeout_ms
        out.timers.append(TimerChange(("sync", group.group_id), deadline_ms))

    def _give_up(self, group: ClassicGroup, missing: list[str], out: Outcome) -> None:
        """Remove the members that did not rejoin in time."""
        trigger = _late(missing, group.rebalance_timeout_ms, "join")
        for member_id in missing:
            out.timers.append(session_timer(group.group_id, member_id, None))
            group.remove(member_id)
        if group.round is not None:
            group.round.add(trigger)
        _note_rebalance(group, trigger, out)

    def completed(self, group: ClassicGroup, now_ms: int) -> None:
        """Count a rebalance whose assignment is known."""
        self._counts.classic_rebalances.add()
        if group.rebalance_began_ms >= 0:
            self._counts.classic_ms.record(now_ms - group.rebalance_began_ms)
            group.rebalance_began_ms = -1

    def _fail_syncs(self, group: ClassicGroup, code: ErrorCode, now_ms: int, out: Outcome) -> None:
        """Drop the assignments of a generation that did not complete."""
        for member in group.members.values():
            member.assignment = b""
            waiting = group.syncing.pop(member.member_id, None)
            if waiting is not None:
                out.replies.append(Reply(waiting.token, SyncGroupResponse(error_code=code)))
                self.keep_member(group, member, now_ms, out)

    # -- members

    def keep_alive(self, group: ClassicGroup, member_id: str, now_ms: int, out: Outcome) -> None:
        """Count another request of a member (a commit) as a heartbeat."""
        member = group.members.get(member_id)
        if member is not None:
            self.keep_member(group, member, now_ms, out)

    def keep_member(
        self, group: ClassicGroup, member: ClassicMember, now_ms: int, out: Outcome
    ) -> None:
        member.seen_ms = now_ms
        deadline_ms = now_ms + member.session_timeout_ms
        out.timers.append(session_timer(group.group_id, member.member_id, deadline_ms))

    def remove(
        self, group: ClassicGroup, member_id: str, trigger: Trigger, now_ms: int, out: Outcome
    ) -> None:
        """Remove a member; the trigger says why it is gone."""
        self.refuse_waiting(group, member_id, ErrorCode.UNKNOWN_MEMBER_ID, out)
        out.timers.append(session_timer(group.group_id, member_id, None))
        group.remove(member_id)
        if group.state in (State.COMPLETING, State.STABLE):
            self.prepare(group, trigger, now_ms, out)
        elif group.round is not None:
            group.round.add(trigger)
        self.try_complete(group, now_ms, out)

    def drop_pending(self, group: ClassicGroup, member_id: str, now_ms: int, out: Outcome) -> None:
        out.timers.append(session_timer(group.group_id, member_id, None))
        group.pending.discard(member_id)
        self.try_complete(group, now_ms, out)

    def refuse_waiting(
        self, group: ClassicGroup, member_id: str, code: ErrorCode, out: Outcome
    ) -> None:
        """Answer the waiting requests of a removed member."""
        waiting = group.joining.pop(member_id, None)
        if waiting is not None:
            name = member_id if code is ErrorCode.FENCED_INSTANCE_ID else ""
            out.replies.append(Reply(waiting.token, join_refusal(waiting.version, name, code)))
        waiting = group.syncing.pop(member_id, None)
        if waiting is not None:
            out.replies.append(Reply(waiting.token, SyncGroupResponse(error_code=code)))

    # -- time

    def session_expired(self, group: ClassicGroup, member_id: str, now_ms: int) -> Outcome:
        """Remove a member whose session timed out, unless its request is waiting for us."""
        out = Outcome()
        member = group.members.get(member_id)
        if member_id in group.pending:
            self.drop_pending(group, member_id, now_ms, out)
        elif member is not None:
            waits = member_id in group.joining or member_id in group.syncing
            if member.is_new or not waits:
                self.remove(group, member_id, _silent(member, now_ms), now_ms, out)
        return out

    def join_expired(self, group: ClassicGroup, now_ms: int) -> Outcome:
        """Complete a join at its deadline; the first is extended while new members join."""
        out = Outcome()
        if group.state is not State.PREPARING:
            return out
        if group.initial_ms_left and group.new_member_added:
            group.new_member_added = False
            delay_ms = min(self._options.initial_rebalance_delay_ms, group.initial_ms_left)
            group.initial_ms_left -= delay_ms
            self._time_join(group, now_ms + delay_ms, out)
        else:
            self._complete(group, now_ms, out)
        return out

    def sync_expired(self, group: ClassicGroup, now_ms: int) -> Outcome:
        """Remove members that did not ask for their assignment in time."""
        out = Outcome()
        if group.state in (State.COMPLETING, State.STABLE) and group.unsynced:
            missing = list(group.unsynced)
            timeout_ms = group.rebalance_timeout_ms
            for member_id in missing:
                out.timers.append(session_timer(group.group_id, member_id, None))
                group.remove(member_id)
            self.prepare(group, _late(missing, timeout_ms, "sync"), now_ms, out)
            self.try_complete(group, now_ms, out)
        return out

    # -- moving the coordinator

    def loaded(self, group: ClassicGroup, now_ms: int, out: Outcome) -> None:
        """Start the session timers of a group that was loaded from the log."""
        for member in group.members.values():
            self.keep_member(group, member, now_ms, out)
        if len(group.members) > self._options.size_max:
            sizes = {"size": len(group.members), "limit": self._options.size_max}
            self.prepare(group, Trigger("coordinator-moved", sizes), now_ms, out)

    def interrupted(self, group: ClassicGroup, code: ErrorCode) -> list[Reply]:
        """Answer all waiting requests with an error."""
        replies = [
            Reply(waiting.token, join_refusal(waiting.version, member_id, code))
            for member_id, waiting in group.joining.items()
        ]
        replies += [
            Reply(waiting.token, SyncGroupResponse(error_code=code))
            for waiting in group.syncing.values()
        ]
        group.joining.clear()
        group.syncing.clear()
        return replies

    def unloaded(self, group: ClassicGroup) -> list[Reply]:
        """Redirect waiting members to the new coordinator."""
        group.state = State.DEAD
        return self.interrupted(group, ErrorCode.NOT_COORDINATOR)


def note_end(group: ClassicGroup, event: str, now_ms: int, out: Outcome) -> None:
    """Note the end of a group's rebalance: members are assigned, or there are none."""
    ended, group.round = group.round, None
    if ended is not None:
        result = ended.result(group.generation, len(group.members), now_ms)
        out.note(
            event,
            subjects.group(group.group_id),
            ended.cause,
            {**result, "assignor": group.protocol or ""},
        )


def _note_rebalance(group: ClassicGroup, trigger: Trigger, out: Outcome) -> None:
    data = {
        "generation": group.generation,
        "state": group.state.value,
        "members": len(group.members),
        **trigger.data,
    }
    out.note("group.rebalance", subjects.group(group.group_id), trigger.cause, data)


def _silent(member: ClassicMember, now_ms: int) -> Trigger:
    """Return what a member's missing heartbeats trigger."""
    data = {
        "member": member.member_id,
        "client_id": member.client_id,
        "host": member.client_host.removeprefix("/"),
        "timeout_ms": member.session_timeout_ms,
    }
    if member.seen_ms is not None:
        data["silent_ms"] = now_ms - member.seen_ms
    return Trigger("session-timeout", data, timed_out=(member.member_id,))


def _late(missing: list[str], timeout_ms: int, step: str) -> Trigger:
    """Return what members trigger that did not join, or sync, in time."""
    data = {"missing": named(missing), "timeout_ms": timeout_ms, "step": step}
    return Trigger("rebalance-timeout", data, timed_out=tuple(missing))
