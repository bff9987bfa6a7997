"""Membership in a classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Decisions are in `classic_state`, `pulse` and `leadership`; this is the edge that sends, waits and
calls the user. Three things run on the loop: the heart, a round of joining, and commits. What the
user sees happens in `ensure_active` only: callbacks, and partitions that come and go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.client.errors import CommitFailedError, NetworkError
from barnabas.consumer.group.assignors import is_cooperative
from barnabas.consumer.group.callbacks import Callbacks
from barnabas.consumer.group.classic_state import ClassicState, Phase
from barnabas.consumer.group.commits import Commits
from barnabas.consumer.group.contract import CommitCallback, ConsumerGroupMetadata, Offsets
from barnabas.consumer.group.coordinator import Coordinator
from barnabas.consumer.group.join_requests import (
    Self,
    heartbeat_request,
    leave_error,
    leave_request,
)
from barnabas.consumer.group.offset_requests import Identity
from barnabas.consumer.group.pulse import Pulse
from barnabas.consumer.group.refusals import commit_failure, refusal
from barnabas.consumer.group.remedies import COMMIT, HEARTBEAT, Remedy, remedy
from barnabas.consumer.group.round import Round
from barnabas.consumer.group.strategy import Strategy
from barnabas.consumer.group.surroundings import Surroundings, now_ms
from barnabas.consumer.subscription import Mode
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

_log = logging.getLogger(__name__)

REVOKE_COMMIT_MS = 5_000
"""How long a rebalance waits for the commit of what is given up."""

LEAVE_MS = 5_000
"""How long leaving may take when the caller sets no limit: the group also notices by itself."""


class ClassicMembership:
    """One consumer's part in a classic group."""

    def __init__(self, surroundings: Surroundings, strategies: Mapping[str, Strategy]) -> None:
        settings = surroundings.settings
        self._around = surroundings
        self._settings = settings
        self._subscription = surroundings.subscription
        self._strategies = strategies
        self._coordinator = Coordinator(surroundings.switchboard, settings.group_id)
        self._state = ClassicState(is_cooperative(strategies))
        self._pulse = Pulse(
            settings.session_timeout_ms,
            settings.heartbeat_interval_ms,
            settings.max_poll_interval_ms,
        )
        self._round = Round(surroundings, self._coordinator, self._state, strategies)
        self._callbacks = Callbacks(self._subscription, surroundings.invoke)
        self._backoff = surroundings.backoff()
        self._commits = Commits(
            self._coordinator,
            settings,
            self._subscription,
            self,
            surroundings.backoff(),
            invoke=surroundings.invoke,
            wake=surroundings.wake,
        )
        self._joining: asyncio.Task[None] | None = None
        self._heart: asyncio.Task[None] | None = None
        self._heart_woken = asyncio.Event()
        self._farewell: asyncio.Task[None] | None = None
        self._active = asyncio.Lock()
        self._fatal: Exception | None = None
        self._metadata_is_new = True
        self._rebalances = 0
        self._last_reason = ""
        self._closed = False

    # -- what is asked of it

    @property
    def needs_attention(self) -> bool:
        """Tell whether `ensure_active` would do something."""
        if self._fatal is not None or self._commits.has_callbacks:
            return True
        if not self._subscription.by_group:
            return False
        if self._joining is not None and not self._joining.done():
            return not self._reads_on
        return (
            self._joining is not None
            or self._metadata_is_new
            or self._state.reason is not None
            or self._state.phase is not Phase.STABLE
        )

    @property
    def generation(self) -> int:
        """Return the generation, -1 outside the group."""
        return self._state.generation

    @property
    def member_id(self) -> str:
        """Return the id under which the group knows this consumer."""
        return self._state.member_id

    @property
    def state(self) -> str:
        """Return how far the member is."""
        return self._state.state

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return what a transactional producer shows."""
        return ConsumerGroupMetadata(
            self._settings.group_id,
            self._state.generation,
            self._state.member_id,
            self._settings.instance_id,
            self._state.state,
        )

    def topics_followed(self) -> Iterable[str] | None:
        """Return the topics of all members, if this one leads; all topics for a pattern."""
        if self._subscription.mode is Mode.PATTERN:
            return None
        return () if self._round.leadership is None else sorted(self._round.leadership.topics)

    def health(self) -> dict[str, Any]:
        """Return what an operator wants to know."""
        now = now_ms()
        pulse = self._pulse

        def age(then_ms: float | None) -> float | None:
            return None if then_ms is None or then_ms > now else round(now - then_ms, 3)

        return {
            "group": self._settings.group_id,
            "protocol": "classic",
            "state": self._state.state,
            "phase": self._state.phase.value,
            "member_id": self._state.member_id,
            "generation": self._state.generation,
            "is_leader": self._round.leadership is not None,
            "is_cooperative": self._state.is_cooperative,
            "coordinator": self._coordinator.node_id,
            "coordinator_lost_because": self._coordinator.lost_because,
            "assigned": len(self._subscription.assigned) if self._subscription.by_group else 0,
            "rejoin_because": self._state.reason,
            "rebalances": self._rebalances,
            "last_rebalance_because": self._last_reason,
            "heartbeat_answered_ms_ago": age(pulse.answered_ms),
            "polled_ms_ago": age(pulse.polled_ms),
            "commits": self._commits.committed_count,
            "commits_failed": self._commits.failed_count,
            "commits_pending": self._commits.pending,
        }

    # -- what it is told

    async def start(self) -> None:
        """Begin to work."""
        self._heart = asyncio.get_running_loop().create_task(self._beat(), name="heartbeats")
        self._heart.add_done_callback(self._heart_stopped)

    def note_poll(self, now_ms: float) -> None:
        """The user polls."""
        self._pulse.poll(now_ms)

    def subscription_changed(self) -> None:
        """Look at the subscription in the next poll; without one, leave in the background."""
        self._metadata_is_new = True
        if not self._subscription.by_group and self._state.phase is not Phase.OUT:
            member_id = self._forget_group()
            farewell = self._send_leave(member_id, "the consumer unsubscribed", LEAVE_MS)
            self._farewell = asyncio.get_running_loop().create_task(farewell, name="leaving")
        self._around.wake()

    def metadata_changed(self) -> None:
        """Look at the topics in the next poll."""
        self._metadata_is_new = True
        if self._subscription.by_group:
            self._around.wake()

    # -- in the user's poll

    async def ensure_active(self, timeout_ms: float) -> bool:
        """Do what the group waits for; see the contract."""
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        try:
            async with asyncio.timeout_at(deadline) as limit:
                await self._active.acquire()
                limit.reschedule(None)
        except TimeoutError:
            return False
        try:
            return await self._step(deadline)
        finally:
            self._active.release()

    async def _step(self, deadline: float) -> bool:
        await self._commits.run_callbacks()
        while not self._closed:
            self._raise_fatal()
            if not self._subscription.by_group:
                return True
            self._pulse.poll(now_ms())  # the user is in poll as long as this goes on
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

    def _raise_fatal(self) -> None:
        fatal = self._fatal
        if fatal is None:
            return
        if getattr(fatal, "code", None) is not ErrorCode.FENCED_INSTANCE_ID:
            self._fatal = None  # the next poll tries again; somebody may have mended it
        raise fatal

    async def _look_at_topics(self, deadline: float) -> bool:
        """See whether topics or partitions changed; False if there was no time to see."""
        subscription, board = self._subscription, self._around.switchboard
        if subscription.mode is Mode.PATTERN:
            if not board.cluster.topics:
                try:
                    async with asyncio.timeout_at(deadline):
                        await board.refresh(None)
                except (TimeoutError, NetworkError):
                    return False
            subscription.match(
                name
                for name, topic in board.cluster.topics.items()
                if topic.partitions
                and not (topic.internal and self._settings.exclude_internal_topics)
            )
        self._metadata_is_new = False
        if self._state.joined_topics != frozenset(subscription.topics):
            self._state.request_rejoin("the subscription changed")
        if self._round.leadership is not None:
            change = self._round.leadership.change(board.cluster)
            if change is not None:
                self._state.request_rejoin(f"the topics changed: {change}")
        return True

    async def _begin_join(self) -> None:
        """Give up what must be given up, then let the round run."""
        state, subscription = self._state, self._subscription
        reason = state.reason
        assert reason is not None
        owned = subscription.assigned_partitions()
        if owned and state.may_commit:
            limit_ms = min(REVOKE_COMMIT_MS, self._settings.max_poll_interval_ms)
            await self._commits.auto_commit_now("before a rebalance", limit_ms)
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
        self._joining = asyncio.get_running_loop().create_task(
            self._round.run(reason), name="joining"
        )
        self._joining.add_done_callback(self._joined)

    def _joined(self, task: asyncio.Task[None]) -> None:
        """A round is over: the heart begins to beat, and the user's poll should look."""
        if self._state.phase is Phase.ARRIVED:
            self._pulse.begin(now_ms())
            self._heart_woken.set()
        self._around.wake()

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
            limit_ms = min(REVOKE_COMMIT_MS, self._settings.max_poll_interval_ms)
            await self._commits.auto_commit_now("before partitions are given up", limit_ms)
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

    def _heart_stopped(self, task: asyncio.Task[None]) -> None:
        failure = None if task.cancelled() else task.exception()
        if isinstance(failure, Exception):  # a bug of ours: the user hears of it in poll
            self._fatal = failure
            self._around.wake()

    async def _beat(self) -> None:
        while True:
            if not self._state.is_in:
                self._heart_woken.clear()
                await self._heart_woken.wait()
                continue
            now = now_ms()
            if self._pulse.is_user_away(now):
                await self._go_for_silence()
            elif self._pulse.is_due(now):
                await self._heartbeat()
            else:
                await asyncio.sleep(self._pulse.wait_ms(now) / 1000)

    async def _go_for_silence(self) -> None:
        limit_ms = self._settings.max_poll_interval_ms
        reason = f"poll() was not called for max.poll.interval.ms={limit_ms}"
        _log.warning(
            "group %r: %s, so the consumer leaves the group and others get its partitions. Call "
            "poll() more often, raise max.poll.interval.ms, or get fewer records per poll with "
            "max.poll.records. The next poll() joins again.",
            self._settings.group_id,
            reason,
        )
        member_id = self._state.member_id
        self._state.lose(reason, forget=self._settings.instance_id is None)
        await self._send_leave(member_id, reason, LEAVE_MS)

    async def _heartbeat(self) -> None:
        state, pulse = self._state, self._pulse
        me = Self(state.member_id, state.generation)
        pulse.send(now_ms())
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

    def _heartbeat_failed(self, why: str) -> None:
        now = now_ms()
        self._pulse.fail(now, self._backoff.delay_ms(self._pulse.failures + 1))
        if self._pulse.ends_session(now):
            _log.warning(
                "group %r: no heartbeat was answered for session.timeout.ms=%d: %s",
                self._settings.group_id,
                self._settings.session_timeout_ms,
                why,
            )

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

    # -- commits

    async def commit(self, offsets: Offsets, timeout_ms: float | None = None) -> None:
        """Commit, and wait for it."""
        await self._commits.commit(offsets, timeout_ms)

    def commit_soon(self, offsets: Offsets, callback: CommitCallback | None = None) -> None:
        """Commit in the background."""
        self._commits.commit_soon(offsets, callback)

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return committed offsets."""
        return await self._commits.committed(partitions, timeout_ms)

    def maybe_auto_commit(self, now_ms: float) -> None:
        """Commit what was consumed, if it is time."""
        if not self._subscription.by_group or self._state.phase is Phase.STABLE:
            self._commits.maybe_auto_commit(now_ms)

    def identity(self) -> Identity:
        """Return who commits: this member, or nobody in particular for partitions by hand."""
        if not self._subscription.by_group:
            return Identity(self._settings.group_id)
        if not self._state.may_commit:
            raise CommitFailedError(commit_failure(ErrorCode.UNKNOWN_MEMBER_ID, self._settings))
        return Identity(
            self._settings.group_id,
            self._state.generation,
            self._state.member_id,
            self._settings.instance_id,
        )

    def reader(self) -> Identity:
        """Return who reads committed offsets: classic groups do not ask."""
        return Identity(self._settings.group_id)

    def refused(self, code: ErrorCode, sent: Identity) -> None:
        """A commit was refused: if it was in the name of what we still are, that is over."""
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self._fatal = refusal(code, self._settings)
        if self._state.concerns(sent.generation):
            self._state.apply(remedy(COMMIT, code), code, "a commit")
        self._around.wake()

    # -- the end

    async def leave(self, reason: str) -> None:
        """Give everything back and leave the group."""
        async with self._active:
            await self._give_back(commit=True, limit_ms=REVOKE_COMMIT_MS)
            await self._leave_group(reason)
            self._callbacks.raise_failure()

    async def close(
        self, *, commit: bool = True, leave: bool = True, timeout_ms: float | None = None
    ) -> None:
        """End; see the contract."""
        if self._closed:
            return
        self._closed = True
        limit_ms = self._settings.request_timeout_ms if timeout_ms is None else timeout_ms
        deadline = asyncio.get_running_loop().time() + limit_ms / 1000
        try:
            async with asyncio.timeout_at(deadline):
                await self._commits.settle()
        except TimeoutError:
            _log.warning("group %r: closed before all commits ended", self._settings.group_id)
        try:
            await self._give_back(commit=commit, limit_ms=limit_ms)
            await self._commits.run_callbacks()
            if leave:
                await self._leave_group("the consumer was closed", limit_ms)
            self._callbacks.raise_failure()
        finally:
            owned = (self._heart, self._joining, self._farewell)
            tasks = [task for task in owned if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._commits.close()

    async def _give_back(self, *, commit: bool, limit_ms: float) -> None:
        """Commit and tell the listener, as long as the group still counts this member."""
        subscription, state = self._subscription, self._state
        if commit and subscription.assigned and (state.may_commit or not subscription.by_group):
            await self._commits.auto_commit_now("before the consumer was closed", limit_ms)
        if not subscription.by_group:
            return
        owned = subscription.assigned_partitions()
        if state.is_lost:
            await self._callbacks.lost(owned)
        else:
            await self._callbacks.revoked(owned)
        subscription.revoke(owned)

    async def _leave_group(self, reason: str, limit_ms: float = LEAVE_MS) -> None:
        await self._send_leave(self._forget_group(), reason, limit_ms)

    def _forget_group(self) -> str:
        """Be no member any more; return the id that the group should hear of, "" if none."""
        if self._joining is not None:
            self._joining.cancel()
            self._joining = None
        member_id = "" if self._state.phase is Phase.OUT else self._state.member_id
        self._state.leave()
        self._round.leadership = None
        return member_id

    async def _send_leave(self, member_id: str, reason: str, limit_ms: float) -> None:
        """Tell the group, so that it need not wait; static members stay for their session."""
        if not member_id or self._settings.instance_id is not None:
            return
        try:
            async with asyncio.timeout(limit_ms / 1000):
                connection = await self._coordinator.connection()
                version = connection.version_of(LeaveGroupRequest)
                request = leave_request(self._settings, member_id, reason, version)
                response: LeaveGroupResponse = await connection.send(request, version=version)
        except (TimeoutError, BarnabasError) as failure:
            _log.info("group %r: leaving it failed: %s", self._settings.group_id, failure)
            return
        code = ErrorCode.of(leave_error(response))
        if code is not ErrorCode.NONE:
            _log.info("group %r: leaving was answered %s", self._settings.group_id, code.name)
