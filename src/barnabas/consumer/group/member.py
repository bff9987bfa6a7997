"""What members of classic and of KIP-848 groups have in common: heartbeats, commits, poll, close.

A member stays in its group in the background: heartbeats are sent on the loop, whether or not the
user polls. What the user can see of a rebalance (callbacks, added and revoked partitions) happens
only inside `poll`, one caller at a time, which the consumer's core awaits inside the user's poll. A
protocol adds its own step of the poll, its heartbeat, and how it leaves.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable
from random import Random
from typing import Any, Final

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import CommitFailedError, NetworkError
from barnabas.consumer.group.callbacks import CommitCallback, Invoke, ListenerCalls, Offsets, Wake
from barnabas.consumer.group.classic_state import ClassicState
from barnabas.consumer.group.commits import Commits
from barnabas.consumer.group.coordinator import Coordinator
from barnabas.consumer.group.counts import GroupCounts
from barnabas.consumer.group.error_actions import COMMIT, action_for, commit_failure, refusal
from barnabas.consumer.group.heartbeat_timer import HeartbeatTimer
from barnabas.consumer.group.kip848_state import Kip848State
from barnabas.consumer.group.requests import Identity
from barnabas.consumer.group.settings import GroupSettings
from barnabas.consumer.subscription import Mode, Subscription
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.group_metadata import ConsumerGroupMetadata
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata

_log = logging.getLogger(__name__)

REVOKE_COMMIT_MS: Final = 5_000
"""How long a rebalance waits for the commit of the revoked partitions."""

LEAVE_MS: Final = 5_000
"""How long leaving may take if the caller sets no limit; the session times out anyway."""


def now_ms() -> float:
    """Return the running loop's time."""
    return asyncio.get_running_loop().time() * 1000


class GroupMember(ABC):
    """One consumer's membership in a group of either protocol; called on the loop."""

    def __init__(
        self,
        cluster_client: ClusterClient,
        subscription: Subscription,
        settings: GroupSettings,
        state: ClassicState | Kip848State,
        *,
        invoke: Invoke,
        wake: Wake,
        random: Random,
    ) -> None:
        self._client = cluster_client
        self._settings = settings
        self._subscription = subscription
        self._wake = wake
        self._member = state
        self._coordinator = Coordinator(cluster_client, settings.group_id)
        self._heartbeat_timer = HeartbeatTimer(
            settings.session_timeout_ms,
            settings.heartbeat_interval_ms,
            settings.max_poll_interval_ms,
        )
        self.counts = GroupCounts()
        self._listener = ListenerCalls(subscription, invoke, self.counts)
        self._backoff = settings.backoff(random.random)
        self._commits = Commits(
            self._coordinator,
            settings,
            subscription,
            self,
            self._backoff,
            self.counts,
            invoke=invoke,
            wake=wake,
        )
        self._heartbeats: asyncio.Task[None] | None = None
        self._heartbeat_woken = asyncio.Event()
        self._leaving: asyncio.Task[None] | None = None
        self._active = asyncio.Lock()
        self._fatal: Exception | None = None
        self._metadata_is_new = True
        self._in_poll = False
        self.is_unpolled = False
        """The member left because its user does not poll; it rejoins with the next poll."""
        self._rebalances = 0
        self._last_reason = ""
        self._closed = False

    # -- what a protocol adds

    @property
    @abstractmethod
    def needs_poll(self) -> bool:
        """Return whether `poll` has work to do: cheap, for the fast path of the user's poll."""

    @abstractmethod
    def topics_followed(self) -> Iterable[str] | None:
        """Return the topics whose metadata the member needs, besides the user's; None: all."""

    @abstractmethod
    async def _step(self, deadline: float) -> bool:
        """Take the next step for the group, inside the user's poll."""

    @abstractmethod
    async def _heartbeat(self) -> None:
        """Send one heartbeat and act on the response."""

    @abstractmethod
    def _forget_group(self, reason: str) -> Coroutine[Any, Any, None]:
        """End the membership at once; the returned coroutine notifies the group."""

    # -- queries

    @property
    def generation(self) -> int:
        """Return the generation (KIP-848: the member epoch), -1 outside the group."""
        return self._member.generation

    @property
    def member_id(self) -> str:
        """Return the member id of this consumer."""
        return self._member.member_id

    @property
    def state(self) -> str:
        """Return a string of `MemberState`."""
        return self._member.state

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return what a transactional producer needs to commit for this consumer."""
        member = self._member
        return ConsumerGroupMetadata(
            self._settings.group_id,
            member.generation,
            member.member_id,
            self._settings.instance_id,
            member.state,
        )

    def health(self) -> dict[str, Any]:
        """Return the state for operators: coordinator, membership, ages of the last calls."""
        now = now_ms()

        def age(then_ms: float | None) -> float | None:
            return None if then_ms is None or then_ms > now else round(now - then_ms, 3)

        member, subscription = self._member, self._subscription
        return {
            "group": self._settings.group_id,
            "state": member.state,
            "member_id": member.member_id,
            "generation": member.generation,
            "instance_id": self._settings.instance_id,
            "coordinator": self._coordinator.node_id,
            "coordinator_lost_because": self._coordinator.lost_because,
            "assigned": len(subscription.assigned) if subscription.by_group else 0,
            "rejoin_because": member.reason,
            "rebalances": self._rebalances,
            "last_rebalance_because": self._last_reason,
            "heartbeat_answered_ms_ago": age(self._heartbeat_timer.answered_ms),
            "heartbeats_failed": self._heartbeat_timer.failures,
            "polled_ms_ago": age(self._heartbeat_timer.polled_ms),
            "commits": self._commits.committed_count,
            "commits_failed": self._commits.failed_count,
            "commits_pending": self._commits.pending,
        }

    # -- events

    async def start(self) -> None:
        """Start the background work; joins nothing yet."""
        self._heartbeats = asyncio.get_running_loop().create_task(
            self._send_heartbeats(), name="heartbeats"
        )
        self._heartbeats.add_done_callback(self._heartbeats_stopped)

    def user_polled(self, now_ms: float) -> None:
        """Restart max.poll.interval.ms; the `poll` that follows counts as the user's."""
        self._heartbeat_timer.poll(now_ms)
        self._in_poll = True
        self.is_unpolled = False

    def subscription_changed(self) -> None:
        """Apply the subscription in the next poll; without one, leave in the background."""
        self._metadata_is_new = True
        if not self._subscription.by_group and not self._member.is_out:
            leaving = self._depart(self._forget_group("the consumer unsubscribed"))
            self._leaving = asyncio.get_running_loop().create_task(leaving, name="leaving")
        self._wake()

    def metadata_changed(self) -> None:
        """Check the topics in the next poll."""
        self._metadata_is_new = True
        if self._subscription.by_group:
            self._wake()

    # -- in the user's poll

    async def poll(self, timeout_ms: float) -> bool:
        """Do what the group waits for: run callbacks, (re)join, take over the assignment.

        Returns True when the assigned partitions may be read: the member has joined, or continues
        with what it keeps during a cooperative rebalance. False: the time ran out; the join
        continues in the background, and the next call picks it up. The time does not bound
        callbacks.

        Raises errors that no retry resolves (authorization, a fenced instance id, a group of
        another kind), and RebalanceListenerError when user code failed.
        """
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        try:
            async with asyncio.timeout_at(deadline) as limit:
                await self._active.acquire()
                limit.reschedule(None)
        except TimeoutError:
            return False
        try:
            await self._commits.run_callbacks()
            return await self._step(deadline)
        finally:
            self._in_poll = False
            self._active.release()

    @property
    def _has_report(self) -> bool:
        """Return whether an error or a callback waits for the user, whatever the group does."""
        return self._fatal is not None or self._commits.has_callbacks

    @property
    def _is_idle(self) -> bool:
        """Return whether there is no subscription by group, or the user has stopped polling."""
        return self.is_unpolled or not self._subscription.by_group

    def _waited(self) -> None:
        """Record that a poll still runs after it has waited: its user is not stuck."""
        if self._in_poll:
            self._heartbeat_timer.poll(now_ms())

    def _raise_fatal(self) -> None:
        fatal = self._fatal
        if fatal is None:
            return
        if getattr(fatal, "code", None) is not ErrorCode.FENCED_INSTANCE_ID:
            self._fatal = None  # the next poll retries: the cause may have been fixed
        raise fatal

    async def _match_topics(self, deadline: float) -> bool:
        """Match a pattern with the existing topics; return False if time ran out."""
        subscription, client = self._subscription, self._client
        if subscription.mode is not Mode.PATTERN:
            return True
        if not client.cluster.topics:
            try:
                async with asyncio.timeout_at(deadline):
                    await client.refresh(None)
            except (TimeoutError, NetworkError):
                return False
        subscription.match(
            name
            for name, topic in client.cluster.topics.items()
            if topic.partitions and not (topic.internal and self._settings.exclude_internal_topics)
        )
        return True

    async def _commit_before(self, occasion: str) -> None:
        """Commit consumed offsets before some of the partitions are given up."""
        limit_ms = min(REVOKE_COMMIT_MS, self._settings.max_poll_interval_ms)
        await self._commits.auto_commit_now(occasion, limit_ms)

    # -- heartbeats

    async def _send_heartbeats(self) -> None:
        while True:
            if not self._member.is_in:
                self._heartbeat_woken.clear()
                await self._heartbeat_woken.wait()
                continue
            now = now_ms()
            if self._heartbeat_timer.is_poll_overdue(now):
                await self._leave_unpolled()
            elif self._heartbeat_timer.is_due(now):
                self._heartbeat_timer.send(now)
                self.counts.heartbeat_sent_ms = now
                await self._heartbeat()
            else:
                await self._pause(self._heartbeat_timer.wait_ms(now) / 1000)

    async def _pause(self, seconds: float) -> None:
        """Wait until that time, or until a heartbeat is due at once."""
        self._heartbeat_woken.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._heartbeat_woken.wait()
        except TimeoutError:
            pass

    def _heartbeats_stopped(self, task: asyncio.Task[None]) -> None:
        failure = None if task.cancelled() else task.exception()
        if isinstance(failure, Exception):  # a bug of ours: raised from the next poll
            self._fatal = failure
            self._wake()

    async def _leave_unpolled(self) -> None:
        limit_ms = self._settings.max_poll_interval_ms
        reason = f"poll() was not called for max.poll.interval.ms={limit_ms}"
        _log.warning(
            "group %r: %s, so the consumer leaves the group and others get its partitions. Call "
            "poll() more often, raise max.poll.interval.ms, or get fewer records per poll with "
            "max.poll.records. The next poll() rejoins.",
            self._settings.group_id,
            reason,
        )
        leaving = self._forget_group(reason)
        self._member.lose(reason, forget=False)
        self.is_unpolled = True
        self._wake()
        await self._bounded(leaving, LEAVE_MS)

    def _heartbeat_failed(self, why: str) -> None:
        now = now_ms()
        self._heartbeat_timer.fail(now, self._backoff.delay_ms(self._heartbeat_timer.failures + 1))
        if self._heartbeat_timer.ends_session(now):
            _log.warning(
                "group %r: no heartbeat response for session.timeout.ms=%d: %s",
                self._settings.group_id,
                self._heartbeat_timer.session_timeout_ms,
                why,
            )

    # -- commits

    async def commit(self, offsets: Offsets, timeout_ms: float | None = None) -> None:
        """Commit with retries; CommitFailedError if other members own the partitions."""
        await self._commits.commit(offsets, timeout_ms)

    def commit_soon(self, offsets: Offsets, callback: CommitCallback | None = None) -> None:
        """Commit without waiting, in the order of calls; `callback` is run in a later poll."""
        self._commits.commit_soon(offsets, callback)

    def commit_parting(self, offsets: Offsets) -> None:
        """Commit without waiting, as the member that is about to give up all partitions."""
        if self._member.may_commit or not self._subscription.by_group:
            self._commits.commit_soon(offsets, sender=self.identity())

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the group's committed offsets; partitions without one are left out."""
        return await self._commits.committed(partitions, timeout_ms)

    def maybe_auto_commit(self, now_ms: float) -> None:
        """Commit what was consumed if enable.auto.commit is on and its interval has passed."""
        if not self._subscription.by_group or self._member.is_in:
            self._commits.maybe_auto_commit(now_ms)

    def identity(self) -> Identity:
        """Return the identity for commits: this member, or none for manual assignments."""
        if not self._subscription.by_group:
            return Identity(self._settings.group_id)
        if not self._member.may_commit:
            raise CommitFailedError(commit_failure(ErrorCode.UNKNOWN_MEMBER_ID, self._settings))
        return self._identity()

    def _identity(self) -> Identity:
        return Identity(
            self._settings.group_id,
            self._member.generation,
            self._member.member_id,
            self._settings.instance_id,
        )

    def reader(self) -> Identity:
        """Return the identity for reading committed offsets: classic groups need none."""
        return Identity(self._settings.group_id)

    def refused(self, code: ErrorCode, sent: Identity) -> None:
        """Act on a rejected commit, if it was sent under the current identity."""
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self._fatal = refusal(code, self._settings)
        if self._member.concerns(sent.generation):
            self._member.apply(action_for(COMMIT, code), code, "OffsetCommit")
        self._wake()

    # -- close

    async def close(
        self, *, commit: bool = True, leave: bool = True, timeout_ms: float | None = None
    ) -> None:
        """Commit what was consumed (with auto-commit), notify the listener, leave the group.

        `commit=False` skips the commit; with `leave=False` the session is left to time out.
        """
        if self._closed:
            return
        self._closed = True
        limit_ms = self._settings.request_timeout_ms if timeout_ms is None else timeout_ms
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + limit_ms / 1000

        def left_ms() -> float:  # all steps of closing share the time
            return max(0.0, (deadline_s - loop.time()) * 1000)

        await self._bounded(self._commits.settle(), left_ms())
        try:
            await self._give_back(commit=commit, limit_ms=left_ms())
            await self._commits.run_callbacks()
            leaving = self._forget_group("the consumer was closed")
            if leave:
                await self._bounded(leaving, left_ms())
            else:
                leaving.close()
            self._listener.raise_failure()
        finally:
            tasks = [task for task in (self._heartbeats, self._leaving) if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._commits.close()

    async def _depart(self, leaving: Coroutine[Any, Any, None]) -> None:
        """Leave once the last commits are complete: a group accepts them from members only."""
        try:
            await self._bounded(self._commits.settle(), LEAVE_MS)
        except BaseException:
            leaving.close()
            raise
        await self._bounded(leaving, LEAVE_MS)

    async def _bounded(self, work: Coroutine[Any, Any, None], limit_ms: float) -> None:
        """Wait for a step of leaving, for a while; a failure is logged and leaving continues."""
        try:
            async with asyncio.timeout(limit_ms / 1000):
                await work
        except (TimeoutError, BarnabasError) as failure:
            _log.info("group %r: leaving continues after %r", self._settings.group_id, failure)

    async def _give_back(self, *, commit: bool, limit_ms: float) -> None:
        """Commit and notify the listener, while this consumer is still a member."""
        subscription, member = self._subscription, self._member
        if commit and subscription.assigned and (member.may_commit or not subscription.by_group):
            await self._commits.auto_commit_now("before the consumer was closed", limit_ms)
        if not subscription.by_group:
            return
        owned = subscription.assigned_partitions()
        if member.is_lost:
            await self._listener.lost(owned)
        else:
            await self._listener.revoked(owned)
        subscription.revoke(owned)
