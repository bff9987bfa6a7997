"""Membership in a classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Decisions are in `classic_state`, `pulse` and `leadership`; joining is in `round`. This is what
happens in the user's poll: partitions are given up before a join and taken over after it. Eager
members give up everything, cooperative ones only what others shall have (KIP-429).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

from barnabas.consumer.group.assignors import is_cooperative
from barnabas.consumer.group.callbacks import unbroken
from barnabas.consumer.group.classic_state import Arrival, ClassicState, Phase
from barnabas.consumer.group.join_requests import (
    Self,
    heartbeat_request,
    leave_error,
    leave_request,
)
from barnabas.consumer.group.member import GroupMember
from barnabas.consumer.group.refusals import refusal
from barnabas.consumer.group.remedies import HEARTBEAT, Remedy, remedy
from barnabas.consumer.group.round import Round
from barnabas.consumer.group.strategy import Strategy
from barnabas.consumer.group.surroundings import Surroundings, now_ms
from barnabas.consumer.subscription import Mode
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

_log = logging.getLogger(__name__)


class ClassicMembership(GroupMember):
    """One consumer's part in a classic group."""

    def __init__(self, surroundings: Surroundings, strategies: Mapping[str, Strategy]) -> None:
        self._state = ClassicState(is_cooperative(strategies))
        super().__init__(surroundings, self._state)
        self._strategies = strategies
        self._round = Round(surroundings, self._coordinator, self._state, strategies)
        self._joining: asyncio.Task[None] | None = None

    # -- what is asked of it

    @property
    def needs_attention(self) -> bool:
        """Tell whether `ensure_active` would do something."""
        if self._has_news or self._is_idle:
            return self._has_news
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
        return () if self._round.leadership is None else sorted(self._round.leadership.topics)

    def health(self) -> dict[str, Any]:
        """Return what an operator wants to know."""
        return {
            **super().health(),
            "protocol": "classic",
            "phase": self._state.phase.value,
            "is_leader": self._round.leadership is not None,
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
        """Tell whether partitions may be read while others are still being dealt out."""
        return self._state.is_cooperative and bool(self._subscription.assigned)

    async def _look_at_topics(self, deadline: float) -> bool:
        """See whether topics or partitions changed; False if there was no time to see."""
        if not await self._match_topics(deadline):
            return False
        self._metadata_is_new = False
        if self._state.joined_topics != frozenset(self._subscription.topics):
            self._state.request_rejoin("the subscription changed")
        if self._round.leadership is not None:
            change = self._round.leadership.change(self._around.cluster_client.cluster)
            if change is not None:
                self._state.request_rejoin(f"the topics changed: {change}")
        return True

    async def _begin_join(self) -> None:
        """Give up what must be given up, then let the round run."""
        state, subscription = self._state, self._subscription
        reason = state.reason
        assert reason is not None
        if subscription.assigned and state.may_commit:
            await self._commit_before("before a rebalance")
        await unbroken(self._give_up_and_join(reason))

    async def _give_up_and_join(self, reason: str) -> None:
        state, subscription = self._state, self._subscription
        owned = subscription.assigned_partitions()
        departure = state.departure(owned, subscription.topics)
        _log.info(
            "group %r: joining, because %s; gives up %d of %d partitions",
            self._settings.group_id,
            reason,
            len(departure.partitions),
            len(owned),
        )
        if departure.is_lost:
            await self._callbacks.lost(departure.partitions)
            state.told_lost()
        else:
            await self._callbacks.revoked(departure.partitions)
        subscription.revoke(departure.partitions)
        if state.is_lost:  # while the callback ran; the next step tells of the rest
            return
        self._last_reason = reason
        state.begin_join(subscription.topics)
        self._joining = asyncio.get_running_loop().create_task(self._join(reason), name="joining")
        self._joining.add_done_callback(lambda _: self._around.wake())

    async def _join(self, reason: str) -> None:
        """Run a round; the heart beats from its end on, whether or not the user polls."""
        await self._round.run(reason)
        if self._state.is_in:
            self._pulse.begin(now_ms())
            self._heart_woken.set()

    async def _end_join(self) -> None:
        task, self._joining = self._joining, None
        assert task is not None
        if task.cancelled():
            self._state.fail_join("the last attempt was broken off")
            return
        failure = task.exception()
        if failure is not None:
            self._state.fail_join(f"the last attempt failed: {failure}")
            if isinstance(failure, Exception):
                self._fatal = failure

    async def _take_over(self) -> None:
        """Make the assignment true for the user."""
        state, subscription = self._state, self._subscription
        foreign = [
            each
            for each in state.assigned
            if each.topic not in subscription.topics and not self._matches(each.topic)
        ]
        if foreign:
            state.taken_over()
            state.request_rejoin(f"{foreign[0]} was assigned, which is not subscribed to")
            return
        arrival = state.arrival(subscription.assigned_partitions())
        if arrival.revoked:
            await self._commit_before("before partitions were given up")
        await unbroken(self._take_share(arrival))

    async def _take_share(self, arrival: Arrival) -> None:
        state, subscription = self._state, self._subscription
        if arrival.revoked:
            await self._callbacks.revoked(arrival.revoked)
        if not state.is_in:  # lost while the callback ran; the next step tells of the rest
            subscription.revoke(arrival.revoked)
            return
        subscription.assign_from_group(state.assigned)
        state.taken_over()
        self._rebalances += 1
        self._metadata_is_new = True  # topics may have changed since the leader looked
        if arrival.revoked:
            state.request_rejoin(f"it gave up {len(arrival.revoked)} partitions for others")
        self._commits.restart_interval(now_ms())
        _log.info(
            "group %r: generation %d gives %d partitions to %s, %d of them new",
            self._settings.group_id,
            state.generation,
            len(state.assigned),
            state.member_id,
            len(arrival.added),
        )
        await self._callbacks.assigned(arrival.added)
        self._callbacks.raise_failure()

    def _matches(self, topic: str) -> bool:
        pattern = self._subscription.pattern
        return pattern is not None and pattern.match(topic) is not None

    # -- the heart

    async def _heartbeat(self) -> None:
        state = self._state
        me = Self(state.member_id, state.generation)
        try:
            connection = await self._coordinator.connection()
            version = connection.version_of(HeartbeatRequest)
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
        code = ErrorCode.of(response.error_code)
        if not state.concerns(me.generation):
            return
        self._heard(code)

    def _heard(self, code: ErrorCode) -> None:
        """Take notice of an answer to a heartbeat of this generation."""
        cure = remedy(HEARTBEAT, code)
        if cure in (Remedy.NONE, Remedy.REJOIN):
            self._pulse.answer(now_ms())
        if cure is Remedy.NONE:
            return
        if cure in (Remedy.RETRY, Remedy.FIND):
            if cure is Remedy.FIND:
                self._coordinator.lost(f"it answered {code.name}")
            self._heartbeat_failed(f"it was answered {code.name}")
            return
        if cure is Remedy.FAIL:
            self._fatal = refusal(code, self._settings, strategies=self._strategies)
            self._state.lose(str(self._fatal), forget=True)
        elif self._state.reason is None or cure is not Remedy.REJOIN:
            self._state.apply(cure, code, "a heartbeat")
        self._around.wake()

    # -- the end

    def _forget_group(self, reason: str) -> Coroutine[Any, Any, None]:
        """Be no member any more, at once; the coroutine tells the group."""
        if self._joining is not None:
            self._joining.cancel()
            self._joining = None
        member_id = "" if self._state.is_out else self._state.member_id
        self._state.leave()
        self._round.leadership = None
        return self._say_farewell(member_id, reason)

    async def _say_farewell(self, member_id: str, reason: str) -> None:
        """Tell the group, so that it need not wait; static members stay for their session."""
        if not member_id or self._settings.instance_id is not None:
            return
        connection = await self._coordinator.connection()
        version = connection.version_of(LeaveGroupRequest)
        request = leave_request(self._settings, member_id, reason, version)
        response: LeaveGroupResponse = await connection.send(request, version=version)
        code = ErrorCode.of(leave_error(response))
        if code is not ErrorCode.NONE:
            _log.info("group %r: leaving was answered %s", self._settings.group_id, code.name)
