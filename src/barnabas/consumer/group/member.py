"""What members of classic and of KIP-848 groups have in common: a heart, commits, a poll, an end.

The heart beats on the loop. What the user sees happens in `ensure_active`, one caller at a time.
A protocol adds its own step of the poll, its heartbeat and its farewell.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable
from typing import Any, Final, Protocol

from barnabas.client.errors import CommitFailedError, NetworkError
from barnabas.consumer.group.callbacks import Callbacks
from barnabas.consumer.group.commits import Commits
from barnabas.consumer.group.contract import CommitCallback, ConsumerGroupMetadata, Offsets
from barnabas.consumer.group.coordinator import Coordinator
from barnabas.consumer.group.offset_requests import Identity
from barnabas.consumer.group.pulse import Pulse
from barnabas.consumer.group.refusals import commit_failure, refusal
from barnabas.consumer.group.remedies import COMMIT, Remedy, remedy
from barnabas.consumer.group.surroundings import Surroundings, now_ms
from barnabas.consumer.subscription import Mode
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata

_log = logging.getLogger(__name__)

REVOKE_COMMIT_MS: Final = 5_000
"""How long a rebalance waits for the commit of what is given up."""

LEAVE_MS: Final = 5_000
"""How long leaving may take when the caller sets no limit: the group also notices by itself."""


class State(Protocol):
    """What both protocols know of a member."""

    member_id: str
    generation: int
    reason: str | None
    is_lost: bool

    @property
    def is_in(self) -> bool:
        """Tell whether the group counts on this member's heartbeats."""

    @property
    def is_out(self) -> bool:
        """Tell whether the group knows nothing of this member."""

    @property
    def may_commit(self) -> bool:
        """Tell whether the group would take this member's commits."""

    @property
    def state(self) -> str:
        """Return the state in the words of users."""

    def concerns(self, generation: int) -> bool:
        """Tell whether an answer to a request of that generation is still about this member."""

    def apply(self, remedy: Remedy, code: ErrorCode, request: str) -> None:
        """Do to this member what an answer calls for."""

    def lose(self, reason: str, *, forget: bool) -> None:
        """The group goes on without this member."""


class GroupMember(ABC):
    """One consumer's part in a group, whatever the group's protocol."""

    def __init__(self, surroundings: Surroundings, state: State) -> None:
        settings = surroundings.settings
        self._around = surroundings
        self._settings = settings
        self._subscription = surroundings.subscription
        self._member = state
        self._coordinator = Coordinator(surroundings.cluster_client, settings.group_id)
        self._pulse = Pulse(
            settings.session_timeout_ms,
            settings.heartbeat_interval_ms,
            settings.max_poll_interval_ms,
        )
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
        self._heart: asyncio.Task[None] | None = None
        self._heart_woken = asyncio.Event()
        self._farewell: asyncio.Task[None] | None = None
        self._active = asyncio.Lock()
        self._fatal: Exception | None = None
        self._metadata_is_new = True
        self._in_poll = False
        self._is_silent = False
        """The member left because its user does not poll; it comes back with the next poll."""
        self._rebalances = 0
        self._last_reason = ""
        self._closed = False

    # -- what a protocol adds

    @abstractmethod
    async def _step(self, deadline: float) -> bool:
        """Do what the group waits for, inside the user's poll."""

    @abstractmethod
    async def _heartbeat(self) -> None:
        """Send one heartbeat and take notice of the answer."""

    @abstractmethod
    def _forget_group(self, reason: str) -> Coroutine[Any, Any, None]:
        """Be no member any more, at once; the coroutine tells the group."""

    # -- what is asked of it

    @property
    def generation(self) -> int:
        """Return the generation or epoch, -1 outside the group."""
        return self._member.generation

    @property
    def member_id(self) -> str:
        """Return the id under which the group knows this consumer."""
        return self._member.member_id

    @property
    def state(self) -> str:
        """Return how far the member is."""
        return self._member.state

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return what a transactional producer shows."""
        member = self._member
        return ConsumerGroupMetadata(
            self._settings.group_id,
            member.generation,
            member.member_id,
            self._settings.instance_id,
            member.state,
        )

    def health(self) -> dict[str, Any]:
        """Return what an operator wants to know."""
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
            "heartbeat_answered_ms_ago": age(self._pulse.answered_ms),
            "heartbeats_failed": self._pulse.failures,
            "polled_ms_ago": age(self._pulse.polled_ms),
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
        """The user polls; what `ensure_active` does next is done for that poll."""
        self._pulse.poll(now_ms)
        self._in_poll = True
        self._is_silent = False

    def subscription_changed(self) -> None:
        """Look at the subscription in the next poll; without one, leave in the background."""
        self._metadata_is_new = True
        if not self._subscription.by_group and not self._member.is_out:
            farewell = self._depart(self._forget_group("the consumer unsubscribed"))
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
            await self._commits.run_callbacks()
            return await self._step(deadline)
        finally:
            self._in_poll = False
            self._active.release()

    @property
    def _has_news(self) -> bool:
        """Tell whether the user has to hear something, whatever the group does."""
        return self._fatal is not None or self._commits.has_callbacks

    @property
    def _is_idle(self) -> bool:
        """Tell whether there is no group to be in, or no user to be in it for."""
        return self._is_silent or not self._subscription.by_group

    def _waited(self) -> None:
        """Note that a poll still goes on after it has waited: its user is not away."""
        if self._in_poll:
            self._pulse.poll(now_ms())

    def _raise_fatal(self) -> None:
        fatal = self._fatal
        if fatal is None:
            return
        if getattr(fatal, "code", None) is not ErrorCode.FENCED_INSTANCE_ID:
            self._fatal = None  # the next poll tries again; somebody may have mended it
        raise fatal

    async def _match_topics(self, deadline: float) -> bool:
        """Match a pattern with the topics that there are; False if there was no time to look."""
        subscription, client = self._subscription, self._around.cluster_client
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
        """Commit what was consumed before some of it goes to others."""
        limit_ms = min(REVOKE_COMMIT_MS, self._settings.max_poll_interval_ms)
        await self._commits.auto_commit_now(occasion, limit_ms)

    # -- the heart

    async def _beat(self) -> None:
        while True:
            if not self._member.is_in:
                self._heart_woken.clear()
                await self._heart_woken.wait()
                continue
            now = now_ms()
            if self._pulse.is_user_away(now):
                await self._go_for_silence()
            elif self._pulse.is_due(now):
                self._pulse.send(now)
                await self._heartbeat()
            else:
                await self._pause(self._pulse.wait_ms(now) / 1000)

    async def _pause(self, seconds: float) -> None:
        """Wait, but not when something is to be told at once."""
        self._heart_woken.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._heart_woken.wait()
        except TimeoutError:
            pass

    def _heart_stopped(self, task: asyncio.Task[None]) -> None:
        failure = None if task.cancelled() else task.exception()
        if isinstance(failure, Exception):  # a bug of ours: the user hears of it in poll
            self._fatal = failure
            self._around.wake()

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
        farewell = self._forget_group(reason)
        self._member.lose(reason, forget=False)
        self._is_silent = True
        self._around.wake()
        await self._bounded(farewell, LEAVE_MS)

    def _heartbeat_failed(self, why: str) -> None:
        now = now_ms()
        self._pulse.fail(now, self._backoff.delay_ms(self._pulse.failures + 1))
        if self._pulse.ends_session(now):
            _log.warning(
                "group %r: no heartbeat was answered for session.timeout.ms=%d: %s",
                self._settings.group_id,
                self._pulse.session_timeout_ms,
                why,
            )

    # -- commits

    async def commit(self, offsets: Offsets, timeout_ms: float | None = None) -> None:
        """Commit, and wait for it."""
        await self._commits.commit(offsets, timeout_ms)

    def commit_soon(self, offsets: Offsets, callback: CommitCallback | None = None) -> None:
        """Commit in the background."""
        self._commits.commit_soon(offsets, callback)

    def commit_parting(self, offsets: Offsets) -> None:
        """Commit in the background, in the name that this member still has."""
        if self._member.may_commit or not self._subscription.by_group:
            self._commits.commit_soon(offsets, sender=self.identity())

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return committed offsets."""
        return await self._commits.committed(partitions, timeout_ms)

    def maybe_auto_commit(self, now_ms: float) -> None:
        """Commit what was consumed, if it is time."""
        if not self._subscription.by_group or self._member.is_in:
            self._commits.maybe_auto_commit(now_ms)

    def identity(self) -> Identity:
        """Return who commits: this member, or nobody in particular for partitions by hand."""
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
        """Return who reads committed offsets: classic groups do not ask."""
        return Identity(self._settings.group_id)

    def refused(self, code: ErrorCode, sent: Identity) -> None:
        """A commit was refused: if it was in the name of what we still are, that is over."""
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self._fatal = refusal(code, self._settings)
        if self._member.concerns(sent.generation):
            self._member.apply(remedy(COMMIT, code), code, "a commit")
        self._around.wake()

    # -- the end

    async def close(
        self, *, commit: bool = True, leave: bool = True, timeout_ms: float | None = None
    ) -> None:
        """End; see the contract."""
        if self._closed:
            return
        self._closed = True
        limit_ms = self._settings.request_timeout_ms if timeout_ms is None else timeout_ms
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + limit_ms / 1000

        def left_ms() -> float:  # all that is done on the way out shares the time
            return max(0.0, (deadline_s - loop.time()) * 1000)

        await self._bounded(self._commits.settle(), left_ms())
        try:
            await self._give_back(commit=commit, limit_ms=left_ms())
            await self._commits.run_callbacks()
            farewell = self._forget_group("the consumer was closed")
            if leave:
                await self._bounded(farewell, left_ms())
            else:
                farewell.close()
            self._callbacks.raise_failure()
        finally:
            tasks = [task for task in (self._heart, self._farewell) if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._commits.close()

    async def _depart(self, farewell: Coroutine[Any, Any, None]) -> None:
        """Leave when what was committed on parting is through: a group takes it from members."""
        try:
            await self._bounded(self._commits.settle(), LEAVE_MS)
        except BaseException:
            farewell.close()
            raise
        await self._bounded(farewell, LEAVE_MS)

    async def _bounded(self, work: Coroutine[Any, Any, None], limit_ms: float) -> None:
        """Do something on the way out, for a while; what fails is logged, the group notices."""
        try:
            async with asyncio.timeout(limit_ms / 1000):
                await work
        except (TimeoutError, BarnabasError) as failure:
            _log.info("group %r: on the way out: %r", self._settings.group_id, failure)

    async def _give_back(self, *, commit: bool, limit_ms: float) -> None:
        """Commit and tell the listener, as long as the group still counts this member."""
        subscription, member = self._subscription, self._member
        if commit and subscription.assigned and (member.may_commit or not subscription.by_group):
            await self._commits.auto_commit_now("before the consumer went", limit_ms)
        if not subscription.by_group:
            return
        owned = subscription.assigned_partitions()
        if member.is_lost:
            await self._callbacks.lost(owned)
        else:
            await self._callbacks.revoked(owned)
        subscription.revoke(owned)
