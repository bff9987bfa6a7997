"""The consumer group protocol (KIP-848): one heartbeat does everything, the broker assigns.

A heartbeat goes through three steps. It may change the member, and with it (or with the topics) the
group's epoch; a group epoch beyond the target's epoch triggers a new target; and the member moves
one step from its current assignment towards its target (see `reconciliation`). All of that is
written, so a new coordinator continues exactly where this one stopped.

Timers: ("session", group, member) removes a silent member, ("rebalance", group, member) one that
does not revoke partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from barnabas.assignment.contract import Member, ServerAssignor
from barnabas.diary import subjects
from barnabas.groups.call import Call
from barnabas.groups.classic_rebalances import session_timer
from barnabas.groups.consumer_group import (
    LEFT_FOR_A_WHILE,
    ConsumerGroup,
    ConsumerMember,
    Snapshot,
    TopicInfo,
    grouped,
    resolve,
)
from barnabas.groups.consumer_request import JOINING, LEAVING, described, is_full, owned_partitions
from barnabas.groups.options import GroupOptions
from barnabas.groups.reconciliation import (
    NONE,
    Current,
    IdPartition,
    MemberState,
    Partitions,
    reconcile,
)
from barnabas.groups.round import Round, Trigger, leaving_cause, named
from barnabas.groups.store_errors import group_error
from barnabas.groups.topics import Topics
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import ConfigError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.outcome import Outcome, Reply, TimerChange
from barnabas.model.patterns import compile_pattern
from barnabas.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from barnabas.wire.messages.leave_group import MemberIdentity

SUBSCRIPTION_CHANGED: Final = -1
"""A time in the past: check the topics again and begin a new epoch anyway."""


def refusal(code: ErrorCode, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    """Build the error response to a heartbeat."""
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=message)


class ConsumerProtocol:
    """Decides for consumer groups, which are its arguments."""

    def __init__(
        self,
        options: GroupOptions,
        new_id: Callable[[], str],
        topics: Callable[[], Topics],
        assignors: Sequence[ServerAssignor],
    ) -> None:
        self._options = options
        self._new_id = new_id
        self._topics = topics
        known = {assignor.name: assignor for assignor in assignors}
        for name in options.consumer_assignors:
            if name not in known:
                raise ConfigError(
                    f"group.consumer.assignors={name}: must be one of {', '.join(known)}"
                )
        self.assignors: Mapping[str, ServerAssignor] = {
            name: known[name] for name in options.consumer_assignors
        }

    # -- the heartbeat

    def heartbeat(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, call: Call
    ) -> Outcome:
        """Join, stay in, or leave a group; raise RequestError if the member may not."""
        if request.member_epoch in (LEAVING, LEFT_FOR_A_WHILE):
            return self._leave(group, request, call)
        size_max = self._options.consumer_size_max
        is_known = request.member_id in group.members or request.instance_id in group.static
        if not is_known and len(group.members) >= size_max:
            raise RequestError(
                ErrorCode.GROUP_MAX_SIZE_REACHED, f"the group is full: it has {size_max} members"
            )
        owned = owned_partitions(request)
        member = self._find(group, request, owned)
        expression = request.subscribed_topic_regex or (member.regex if member else None)
        if call.sees is not None and expression:
            group.sees[expression] = call.sees
        had = NONE if member is None else member.current.assigned
        out = Outcome()
        if member is None or not self._is_quiet(group, member, request, owned, call):
            number, before = group.changes + 1, group.snapshot()
            if member is None:
                member_id = request.member_id or self._new_id()
                member = self.admit(group, member_id, request.instance_id, out)
            member = self.progress(group, described(member, request, call), owned, call.now_ms, out)
            self.undoable(group, number, before, out, refusal)
        self.keep_alive(group, member, call.now_ms, out)
        response = ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.current.epoch,
            heartbeat_interval_ms=self._options.consumer_heartbeat_interval_ms,
        )
        if is_full(request) or member.current.assigned != had:
            response.assignment = _assignment(member.current.assigned)
        out.replies.append(Reply(call.token, response))
        return out

    def _is_quiet(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        request: ConsumerGroupHeartbeatRequest,
        owned: Partitions | None,
        call: Call,
    ) -> bool:
        """Return whether a heartbeat changes nothing, as nearly all of them."""
        return (
            call.now_ms < group.refresh_ms
            and group.epoch == group.target_epoch
            and described(member, request, call) == member
            and self._next(group, member, owned) == member.current
        )

    def _find(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        owned: Partitions | None,
    ) -> ConsumerMember | None:
        """Return the member that sent a heartbeat, None if it is new."""
        is_joining = request.member_epoch == JOINING
        member = group.members.get(request.member_id)
        if request.instance_id is not None:
            holder = group.members.get(group.static.get(request.instance_id, ""))
            if is_joining:
                # A classic member does not announce a temporary leave: it is simply replaced.
                if holder is None or holder.current.epoch == LEFT_FOR_A_WHILE or holder.classic:
                    return None
                if holder.member_id != request.member_id:
                    raise RequestError(
                        ErrorCode.UNRELEASED_INSTANCE_ID,
                        f"instance id {request.instance_id} is used by member {holder.member_id}",
                    )
            elif holder is None:
                raise RequestError(
                    ErrorCode.UNKNOWN_MEMBER_ID, f"instance id {request.instance_id} is unknown"
                )
            elif holder.member_id != request.member_id:
                raise RequestError(
                    ErrorCode.FENCED_INSTANCE_ID,
                    f"instance id {request.instance_id} is now used by member {holder.member_id}",
                )
            member = holder
        if is_joining:
            return member
        if member is None:
            raise RequestError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"member {request.member_id} is not in group {group.group_id}",
            )
        self._check_epoch(member, request.member_epoch, owned)
        return member

    def _check_epoch(self, member: ConsumerMember, epoch: int, owned: Partitions | None) -> None:
        """Accept a member that is up to date, or whose last response may have been lost."""
        current = member.current
        if epoch == current.epoch:
            return
        if epoch != current.previous_epoch or owned is None or not owned <= current.assigned:
            raise RequestError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"member {member.member_id} is in epoch {current.epoch}, not {epoch}",
            )

    def admit(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, out: Outcome
    ) -> ConsumerMember:
        """Create a member; a returning static one gets its previous state and partitions."""
        holder_id = group.static.get(instance_id or "")
        if holder_id is None:
            return ConsumerMember(member_id, instance_id)
        former = group.members[holder_id]
        target = group.target.get(holder_id, NONE)
        group.drop(holder_id)
        out.records += group.member_tombstones(holder_id)
        member = replace(
            former,
            member_id=member_id,
            current=replace(former.current, epoch=0, previous_epoch=0),
        )
        group.put(member)
        group.target[member_id] = target
        out.records += [
            group.member_record(member),
            group.target_record(member_id),
            group.current_record(member),
        ]
        return member

    # -- three steps

    def progress(
        self,
        group: ConsumerGroup,
        updated: ConsumerMember,
        owned: Partitions | None,
        now_ms: int,
        out: Outcome,
    ) -> ConsumerMember:
        """Go through the three steps; return the member after them."""
        former = group.members.get(updated.member_id)
        self._update_member(group, updated, out)
        self._advance_group(group, former, updated, now_ms, out)
        member = self._reconcile(group, updated.member_id, owned, now_ms, out)
        if group.round is not None and group.state_name == "Stable":
            _note_end(group, "group.stable", now_ms, out)
        return member

    def _update_member(self, group: ConsumerGroup, updated: ConsumerMember, out: Outcome) -> None:
        """Step one: update the member from its request."""
        member = group.members.get(updated.member_id)
        if updated == member:
            return
        out.records.append(group.member_record(updated))
        if member is None or (updated.topics, updated.regex) != (member.topics, member.regex):
            group.refresh_ms = SUBSCRIPTION_CHANGED
        group.put(updated)

    def _advance_group(
        self,
        group: ConsumerGroup,
        former: ConsumerMember | None,
        updated: ConsumerMember,
        now_ms: int,
        out: Outcome,
    ) -> None:
        """Step two: a new epoch if members or topics changed, and a target for it."""
        if group.refresh_ms <= now_ms:
            subscription_changed = group.refresh_ms == SUBSCRIPTION_CHANGED
            topics = self._resolve(group)
            topics_changed = topics != group.topics
            before = group.topics
            if topics_changed:
                group.topics = topics
                out.records.append(group.topics_record())
            if subscription_changed or topics_changed:
                group.epoch += 1
                out.records.append(group.epoch_record())
                trigger = _heartbeat_trigger(former, updated, before, topics)
                note_rebalance(group, trigger, now_ms, out)
            group.refresh_ms = now_ms + self._options.consumer_heartbeat_interval_ms
        if group.epoch > group.target_epoch:
            self._retarget(group, out)

    def _retarget(self, group: ConsumerGroup, out: Outcome) -> None:
        assignor = self.assignors[group.preferred_assignor(next(iter(self.assignors)))]
        matches = self._matches(group)
        members = [
            Member(
                member.member_id,
                [*member.topics, *sorted(matches.get(member.regex or "", ()))],
                member.instance_id,
                [
                    TopicPartition(name, partition.partition)
                    for name, partition in group.named(group.target.get(member.member_id, NONE))
                ],
                rack_id=member.rack_id,
            )
            for member in group.members.values()
        ]
        counts = {name: info.partition_count for name, info in group.topics.items()}
        for member_id, partitions in assignor.assign(counts, members).items():
            target = frozenset(
                IdPartition(group.topics[topic].topic_id, number) for topic, number in partitions
            )
            if group.target.get(member_id) != target:
                group.target[member_id] = target
                out.records.append(group.target_record(member_id))
        group.target_epoch = group.epoch
        out.records.append(group.target_epoch_record())

    def _reconcile(
        self,
        group: ConsumerGroup,
        member_id: str,
        owned: Partitions | None,
        now_ms: int,
        out: Outcome,
    ) -> ConsumerMember:
        """Step three: move the member one step towards its target."""
        member = group.members[member_id]
        current = self._next(group, member, owned)
        if current == member.current:
            return member
        updated = replace(member, current=current)
        group.put(updated)
        out.records.append(group.current_record(updated))
        deadline_ms = None
        if current.state is MemberState.UNREVOKED:
            deadline_ms = now_ms + member.rebalance_timeout_ms
        out.timers.append(TimerChange(("rebalance", group.group_id, member_id), deadline_ms))
        return updated

    def _next(
        self, group: ConsumerGroup, member: ConsumerMember, owned: Partitions | None
    ) -> Current:
        name = member.member_id
        return reconcile(
            member.current,
            group.target.get(name, NONE),
            group.target_epoch,
            owned,
            lambda partition: group.holders.get(partition, name) == name,
        )

    # -- leaving

    def _leave(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, call: Call
    ) -> Outcome:
        member = group.members.get(request.member_id)
        if request.instance_id is not None:
            holder = group.static.get(request.instance_id)
            if holder is not None and holder != request.member_id:
                raise RequestError(
                    ErrorCode.FENCED_INSTANCE_ID,
                    f"instance id {request.instance_id} is now used by member {holder}",
                )
        if member is None:
            raise RequestError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"member {request.member_id} is not in group {group.group_id}",
            )
        out = Outcome()
        number, before = group.changes + 1, group.snapshot()
        if request.member_epoch == LEFT_FOR_A_WHILE:
            away = replace(member.current, epoch=LEFT_FOR_A_WHILE, revoking=NONE)
            group.put(replace(member, current=away))
            out.records.append(group.current_record(group.members[member.member_id]))
        else:
            trigger = Trigger("member-left", about(member), left=(member.member_id,))
            self.remove(group, trigger, call.now_ms, out)
        response = ConsumerGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch
        )
        out.replies.append(Reply(call.token, response))
        self.undoable(group, number, before, out, refusal)
        return out

    def evict(
        self, group: ConsumerGroup, identity: MemberIdentity, now_ms: int, out: Outcome
    ) -> ErrorCode:
        """Remove a member that leaves, or for an administrator, who may know its instance id."""
        member_id = identity.member_id
        if identity.group_instance_id is not None:
            holder = group.static.get(identity.group_instance_id)
            if holder is not None and member_id not in ("", holder):
                return ErrorCode.FENCED_INSTANCE_ID
            member_id = holder or ""
        if member_id not in group.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        number, before = group.changes + 1, group.snapshot()
        cause = leaving_cause(identity.reason, by_instance=identity.member_id == "")
        data = about(group.members[member_id]) | {"said": identity.reason or ""}
        self.remove(group, Trigger(cause, data, left=(member_id,)), now_ms, out)
        undo_others, replies = out.undo, out.replies

        def undo(code: ErrorCode) -> list[Reply]:
            group.restore(number, before)
            return replies if undo_others is None else undo_others(code)

        out.undo = undo
        return ErrorCode.NONE

    def remove(self, group: ConsumerGroup, trigger: Trigger, now_ms: int, out: Outcome) -> None:
        """Remove the members that a trigger says are gone.

        The others get their partitions as they send heartbeats.
        Timers keep running: if this cannot be written, the members are restored and need them.
        """
        for member_id in (*trigger.left, *trigger.timed_out):
            group.drop(member_id)
            out.records += group.member_tombstones(member_id)
        topics = self._resolve(group)
        if topics != group.topics:
            group.topics = topics
            out.records.append(group.topics_record())
        group.epoch += 1
        out.records.append(group.epoch_record())
        note_rebalance(group, trigger, now_ms, out)
        if not group.members:
            _note_end(group, "group.empty", now_ms, out)

    # -- time

    def session_expired(self, group: ConsumerGroup, member_id: str, now_ms: int) -> Outcome:
        """Remove a member whose session timed out."""
        if member_id not in group.members:
            return Outcome()
        member = group.members[member_id]
        timeout_ms = self._session_timeout_ms(member)
        data = about(member) | {"timeout_ms": timeout_ms}
        if member_id in group.seen_ms:
            data["silent_ms"] = now_ms - group.seen_ms[member_id]
        return self.give_up(
            group,
            Trigger("session-timeout", data, timed_out=(member_id,)),
            session_timer(group.group_id, member_id, now_ms + timeout_ms),
            now_ms,
        )

    def rebalance_expired(self, group: ConsumerGroup, member_id: str, now_ms: int) -> Outcome:
        """Remove a member that did not revoke its partitions in time."""
        member = group.members.get(member_id)
        if member is None or member.current.state is not MemberState.UNREVOKED:
            return Outcome()
        deadline_ms = now_ms + member.rebalance_timeout_ms
        key = ("rebalance", group.group_id, member_id)
        trigger = too_slow(member, "revoke")
        return self.give_up(group, trigger, TimerChange(key, deadline_ms), now_ms)

    def give_up(
        self, group: ConsumerGroup, trigger: Trigger, again: TimerChange, now_ms: int
    ) -> Outcome:
        """Remove the members that are gone; retry later if it cannot be written now."""
        out = Outcome(timers=[again])
        number, before = group.changes + 1, group.snapshot()
        self.remove(group, trigger, now_ms, out)
        self.undoable(group, number, before, out, refusal)
        return out

    def loaded(self, group: ConsumerGroup, now_ms: int, out: Outcome) -> None:
        """Start the session timers of a group that was loaded from the log."""
        for member in group.members.values():
            self.keep_alive(group, member, now_ms, out)
            if member.current.state is MemberState.UNREVOKED:
                key = ("rebalance", group.group_id, member.member_id)
                out.timers.append(TimerChange(key, now_ms + member.rebalance_timeout_ms))

    def keep_alive(
        self, group: ConsumerGroup, member: ConsumerMember, now_ms: int, out: Outcome
    ) -> None:
        """Restart a member's session timer."""
        group.seen_ms[member.member_id] = now_ms
        deadline_ms = now_ms + self._session_timeout_ms(member)
        out.timers.append(session_timer(group.group_id, member.member_id, deadline_ms))

    # -- inside

    def _session_timeout_ms(self, member: ConsumerMember) -> int:
        if member.classic is not None:
            return member.classic.session_timeout_ms
        return self._options.consumer_session_timeout_ms

    def _matches(self, group: ConsumerGroup) -> dict[str, frozenset[str]]:
        """Match the members' expressions against full names of topics that they may describe."""
        expressions = {m.regex for m in group.members.values() if m.regex is not None}
        patterns = {expression: compile_pattern(expression) for expression in expressions}
        for unused in group.sees.keys() - expressions:
            del group.sees[unused]
        return {
            expression: frozenset(
                name
                for name in self._topics()
                if pattern.fullmatch(name) and group.sees.get(expression, _everyone)(name)
            )
            for expression, pattern in patterns.items()
        }

    def _resolve(self, group: ConsumerGroup) -> dict[str, TopicInfo]:
        return resolve(group.members.values(), self._topics(), self._matches(group))

    def undoable(
        self,
        group: ConsumerGroup,
        number: int,
        before: Snapshot,
        out: Outcome,
        refuse: Callable[[ErrorCode], object],
    ) -> None:
        """Attach how to undo a change, and the response to its sender in that case."""
        if not out.records:
            return
        replies = out.replies

        def undo(code: ErrorCode) -> list[Reply]:
            group.restore(number, before)
            group.refresh_ms = 0
            return [Reply(reply.token, refuse(group_error(code))) for reply in replies]

        out.undo = undo


def about(member: ConsumerMember) -> dict[str, Any]:
    """Return how a note names a member."""
    return {
        "member": member.member_id,
        "client_id": member.client_id,
        "host": member.client_host.removeprefix("/"),
    }


def too_slow(member: ConsumerMember, step: str) -> Trigger:
    """Return what a member triggers that did not take a step in time."""
    data = about(member) | {
        "missing": [member.member_id],
        "timeout_ms": member.rebalance_timeout_ms,
        "step": step,
    }
    return Trigger("rebalance-timeout", data, timed_out=(member.member_id,))


def note_rebalance(group: ConsumerGroup, trigger: Trigger, now_ms: int, out: Outcome) -> None:
    """Note that a group has a new epoch, in which members are assigned again."""
    if group.round is None:
        group.round = Round.begun(trigger, now_ms, len(group.members))
    group.round.add(trigger)
    data = {"generation": group.epoch, "members": len(group.members), **trigger.data}
    out.note("group.rebalance", subjects.group(group.group_id), trigger.cause, data)


def _note_end(group: ConsumerGroup, event: str, now_ms: int, out: Outcome) -> None:
    ended, group.round = group.round, None
    if ended is not None:
        result = ended.result(group.epoch, len(group.members), now_ms)
        out.note(event, subjects.group(group.group_id), ended.cause, result)


def _heartbeat_trigger(
    former: ConsumerMember | None,
    updated: ConsumerMember,
    before: Mapping[str, TopicInfo],
    after: Mapping[str, TopicInfo],
) -> Trigger:
    """Return why a heartbeat begins a new epoch: its sender, or the topics, have changed."""
    data = about(updated)
    if former is None:
        return Trigger("member-joined", data, joined=(updated.member_id,))
    if (former.topics, former.regex) != (updated.topics, updated.regex):
        return Trigger(
            "subscription-changed",
            data
            | {
                "topics_before": _subscribed(former),
                "topics_after": _subscribed(updated),
            },
        )
    counts = {
        name: [
            before[name].partition_count if name in before else 0,
            after[name].partition_count if name in after else 0,
        ]
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    }
    return Trigger("topic-changed", {"changes": dict(list(counts.items())[:20])})


def _subscribed(member: ConsumerMember) -> list[str]:
    return named([*member.topics, *([member.regex] if member.regex else [])])


def _everyone(topic: str) -> bool:
    """Allow every topic: the broker has no authorizer."""
    return True


def _assignment(partitions: Partitions) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic.topic_id, partitions=topic.partitions)
            for topic in grouped(partitions)
        ]
    )
