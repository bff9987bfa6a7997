"""A member of a classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Decisions are in `classic_state` and `heartbeat_timer`; joining is in `classic_join`. This is the
part in the user's poll: partitions are given up before a join and taken over after it. Eager
members give up everything, cooperative ones only what is assigned to others (KIP-429).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping
from random import Random
from typing import Any

from barnabas.client.cluster_client import ClusterClient
from barnabas.consumer.group.assignors import Strategy, is_cooperative
from barnabas.consumer.group.callbacks import Invoke, Wake, unbroken
from barnabas.consumer.group.classic_join import ClassicJoin
from barnabas.consumer.group.classic_state import AssignmentChange, ClassicState, Phase
from barnabas.consumer.group.error_actions import HEARTBEAT, ErrorAction, action_for, refusal
from barnabas.consumer.group.member import GroupMember, now_ms
from barnabas.consumer.group.requests import (
    JoinedMember,
    heartbeat_request,
    leave_error,
    leave_request,
)
from barnabas.consumer.group.settings import GroupSettings
from barnabas.consumer.subscription import Mode, Subscription
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

_log = logging.getLogger(__name__)


class ClassicMember(GroupMember):
    """One consumer's membership in a classic group."""

    def __init__(
        self,
        cluster_client: ClusterClient,
        subscription: Subscription,
        settings: GroupSettings,
        strategies: Mapping[str, Strategy],
        *,
        invoke: Invoke,
        wake: Wake,
        random: Random,
    ) -> None:
        self._state = ClassicState(is_cooperative(strategies))
        super().__init__(
            cluster_client,
            subscription,
            settings,
            self._state,
            invoke=invoke,
            wake=wake,
            random=random,
        )
        self._strategies = strategies
        self._join = ClassicJoin(
            cluster_client,
            subscription,
            settings,
            self._coordinator,
            self._state,
            strategies,
            self._backoff,
            self.counts,
        )
        self._joining: asyncio.Task[None] | None = None

    # -- queries

    @property
    def needs_poll(self) -> bool:
        """Return whether `poll` has work to do."""
        if self._has_report or self._is_idle:
            return self._has_report
        if self._joining is not None and not self._joining.done():
            return not self._reads_on
        return (
            self._joining is not None
            or self._metadata_is_new
            or self._state.reason is not None
            or self._state.phase is not Phase.STABLE
        )

    def topics_followed(self) -> Iterable[str] | None:
        """Return the topics of all members, if this one leads; all topics for a pattern."""
        if self._subscription.mode is Mode.PATTERN:
            return None
        return () if self._join.assigned_by is None else sorted(self._join.assigned_by.topics)

    def health(self) -> dict[str, Any]:
        """Return the state of the membership for operators."""
        return {
            **super().health(),
            "protocol": "classic",
            "phase": self._state.phase.value,
            "is_leader": self._join.assigned_by is not None,
            "is_cooperative": self._state.is_cooperative,
        }

    # -- in the user's poll

    async def _step(self, deadline: float) -> bool:
        while not self._closed:
            self._raise_fatal()
            if self._is_idle:
                return True
            self._waited()
            if self._joining is not None and self._joining.done():
                await self._end_join()
                continue
            if self._state.phase is Phase.ARRIVED:
                await self._take_over()
                continue
            if self._joining is None:
                if self._metadata_is_new and not await self._look_at_topics(deadline):
                    return False
                if self._state.reason is None:
                    return True
                await self._begin_join()
                continue
            if self._reads_on:
                return True
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return False
            await asyncio.wait([self._joining], timeout=left)
        return False

    @property
    def _reads_on(self) -> bool:
        """Return whether partitions may be read while the group is rebalancing."""
        return self._state.is_cooperative and bool(self._subscription.assigned)

    async def _look_at_topics(self, deadline: float) -> bool:
        """Rejoin if topics or partitions changed; return False if time ran out."""
        if not await self._match_topics(deadline):
            return False
        self._metadata_is_new = False
        if self._state.joined_topics != frozenset(self._subscription.topics):
            self._state.request_rejoin("the subscription has changed")
        if self._join.assigned_by is not None:
            change = self._join.assigned_by.change(self._client.cluster)
            if change is not None:
                self._state.request_rejoin(f"topics have changed: {change}")
        return True

    async def _begin_join(self) -> None:
        """Give up the partitions that must be given up, then join in the background."""
        state, subscription = self._state, self._subscription
        reason = state.reason
        assert reason is not None
        if subscription.assigned and state.may_commit:
            await self._commit_before("before a rebalance")
        await unbroken(self._give_up_and_join(reason))

    async def _give_up_and_join(self, reason: str) -> None:
        state, subscription = self._state, self._subscription
        owned = subscription.assigned_partitions()
        revocation = state.revocation(owned, subscription.topics)
        _log.info(
            "group %r: joining because %s; revoking %d of %d partitions",
            self._settings.group_id,
            reason,
            len(revocation.partitions),
            len(owned),
        )
        if revocation.is_lost:
            await self._listener.lost(revocation.partitions)
            state.reported_lost()
        else:
            await self._listener.revoked(revocation.partitions)
        subscription.revoke(revocation.partitions)
        if state.is_lost:  # while the callback ran; the next step reports the rest
            return
        self._last_reason = reason
        self.counts.rebalance_begins(now_ms())
        state.begin_join(subscription.topics)
        self._joining = asyncio.get_running_loop().create_task(
            self._run_join(reason), name="joining"
        )
        self._joining.add_done_callback(lambda _: self._wake())

    async def _run_join(self, reason: str) -> None:
        """Join; from then on heartbeats are sent, whether or not the user polls."""
        await self._join.run(reason)
        if self._state.is_in:
            self._heartbeat_timer.begin(now_ms())
            self._heartbeat_woken.set()

    async def _end_join(self) -> None:
        task, self._joining = self._joining, None
        assert task is not None
        if task.cancelled():
            self._state.fail_join("the last attempt was cancelled")
            return
        failure = task.exception()
        if failure is not None:
            self.counts.rebalance_fails()
            self._state.fail_join(f"the last attempt failed: {failure}")
            if isinstance(failure, Exception):
                self._fatal = failure

    async def _take_over(self) -> None:
        """Apply the assignment on the user's side."""
        state, subscription = self._state, self._subscription
        unwanted = [
            each
            for each in state.assigned
            if each.topic not in subscription.topics and not self._matches(each.topic)
        ]
        if unwanted:
            state.taken_over()
            state.request_rejoin(f"{unwanted[0]} was assigned but is not subscribed to")
            return
        change = state.change(subscription.assigned_partitions())
        if change.revoked:
            await self._commit_before("before partitions were revoked")
        await unbroken(self._take_share(change))

    async def _take_share(self, change: AssignmentChange) -> None:
        state, subscription = self._state, self._subscription
        if change.revoked:
            await self._listener.revoked(change.revoked)
        if not state.is_in:  # lost while the callback ran; the next step reports the rest
            subscription.revoke(change.revoked)
            return
        subscription.assign_from_group(state.assigned)
        state.taken_over()
        self._rebalances += 1
        self.counts.rebalance_ends(now_ms())
        self._metadata_is_new = True  # topics may have changed since the leader looked
        if change.revoked:
            state.request_rejoin(f"it revoked {len(change.revoked)} partitions for other members")
        self._commits.restart_interval(now_ms())
        _log.info(
            "group %r: generation=%d: %d partitions assigned to member %s, %d of them new",
            self._settings.group_id,
            state.generation,
            len(state.assigned),
            state.member_id,
            len(change.added),
        )
        await self._listener.assigned(change.added)
        self._listener.raise_failure()

    def _matches(self, topic: str) -> bool:
        pattern = self._subscription.pattern
        return pattern is not None and pattern.match(topic) is not None

    # -- heartbeats

    async def _heartbeat(self) -> None:
        state = self._state
        me = JoinedMember(state.member_id, state.generation)
        try:
            connection = await self._coordinator.connection()
            version = connection.version_of(HeartbeatRequest)
            began_ms = now_ms()
            response: HeartbeatResponse = await connection.send(
                heartbeat_request(self._settings, me, version),
                version=version,
                timeout_ms=min(
                    self._settings.request_timeout_ms, self._settings.session_timeout_ms
                ),
            )
        except BarnabasError as failure:
            self._coordinator.lost(str(failure))
            self._heartbeat_failed(str(failure))
            return
        self.counts.heartbeats.record(now_ms() - began_ms)
        code = ErrorCode.of(response.error_code)
        if not state.concerns(me.generation):
            return
        self._act_on(code)

    def _act_on(self, code: ErrorCode) -> None:
        """Act on the response to a heartbeat of this generation."""
        action = action_for(HEARTBEAT, code)
        if action in (ErrorAction.NONE, ErrorAction.REJOIN):
            self._heartbeat_timer.answer(now_ms())
        if action is ErrorAction.NONE:
            return
        if action in (ErrorAction.RETRY, ErrorAction.FIND):
            if action is ErrorAction.FIND:
                self._coordinator.lost(f"it responded with {code.name}")
            self._heartbeat_failed(f"the response was {code.name}")
            return
        if action is ErrorAction.FAIL:
            self._fatal = refusal(code, self._settings, strategies=self._strategies)
            self._state.lose(str(self._fatal), forget=True)
        elif self._state.reason is None or action is not ErrorAction.REJOIN:
            self._state.apply(action, code, "Heartbeat")
        self._wake()

    # -- close

    def _forget_group(self, reason: str) -> Coroutine[Any, Any, None]:
        """End the membership at once; the returned coroutine notifies the group."""
        if self._joining is not None:
            self._joining.cancel()
            self._joining = None
        member_id = "" if self._state.is_out else self._state.member_id
        self._state.leave()
        self._join.assigned_by = None
        return self._send_leave(member_id, reason)

    async def _send_leave(self, member_id: str, reason: str) -> None:
        """Notify the group, so that it need not wait; static members stay for their session."""
        if not member_id or self._settings.instance_id is not None:
            return
        connection = await self._coordinator.connection()
        version = connection.version_of(LeaveGroupRequest)
        request = leave_request(self._settings, member_id, reason, version)
        response: LeaveGroupResponse = await connection.send(request, version=version)
        code = ErrorCode.of(leave_error(response))
        if code is not ErrorCode.NONE:
            _log.info("group %r: LeaveGroup failed with %s", self._settings.group_id, code.name)
