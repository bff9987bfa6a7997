"""A member of a KIP-848 group: one heartbeat does everything, and the broker assigns.

Decisions are in `kip848_state`. Heartbeats carry changes to the broker and bring back a target
assignment; the user's poll reconciles with the target, callbacks included, and the next heartbeat
acknowledges it. A partition reaches its next owner only after the previous one has acknowledged
that it is revoked.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Coroutine, Iterable
from random import Random
from typing import Any, Final

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import NetworkError, UnsupportedApiError
from barnabas.consumer.group.callbacks import Invoke, Wake, unbroken
from barnabas.consumer.group.error_actions import (
    CONSUMER_HEARTBEAT,
    ErrorAction,
    action_for,
    refusal,
)
from barnabas.consumer.group.kip848_state import (
    REGEX_VERSION,
    Change,
    Kip848State,
    Subscribed,
    leave_epoch,
)
from barnabas.consumer.group.member import GroupMember, now_ms
from barnabas.consumer.group.requests import Identity
from barnabas.consumer.group.settings import GroupSettings
from barnabas.consumer.subscription import Mode, Subscription
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import ZERO_UUID, Uuid, new_uuid, uuid_text
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

_log = logging.getLogger(__name__)

INTERNAL_TOPICS: Final = (
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
    "__barnabas_diary",
)


class Kip848Member(GroupMember):
    """One consumer's membership in a KIP-848 group."""

    def __init__(
        self,
        cluster_client: ClusterClient,
        subscription: Subscription,
        settings: GroupSettings,
        *,
        invoke: Invoke,
        wake: Wake,
        random: Random,
    ) -> None:
        self._state = Kip848State(uuid_text(new_uuid(random.randbytes)))
        super().__init__(
            cluster_client,
            subscription,
            settings,
            self._state,
            invoke=invoke,
            wake=wake,
            random=random,
        )
        self._changed = asyncio.Event()
        self._target_is_new = False
        self._broker_matches = True
        """Whether patterns are sent to the broker; otherwise the client matches its topics."""

    # -- queries

    @property
    def needs_poll(self) -> bool:
        """Return whether `poll` has work to do."""
        if self._has_report or self._is_idle:
            return self._has_report
        state = self._state
        if state.is_lost or self._metadata_is_new or self._target_is_new:
            return True
        if state.is_out:
            return bool(self._subscribed())
        return not state.is_joined and not self._subscription.assigned

    def topics_followed(self) -> Iterable[str] | None:
        """Return no topics besides the user's; all topics for a pattern."""
        return None if self._subscription.mode is Mode.PATTERN else ()

    def health(self) -> dict[str, Any]:
        """Return the state of the membership for operators."""
        target = self._state.target
        return {
            **super().health(),
            "protocol": "consumer",
            "target": None if target is None else len(target),
            "heartbeat_interval_ms": self._heartbeat_timer.interval_ms,
        }

    # -- in the user's poll

    async def _step(self, deadline: float) -> bool:
        while not self._closed:
            self._raise_fatal()
            if self._is_idle:
                return True
            self._waited()
            if self._state.is_lost:
                await unbroken(self._report_lost())
            if self._metadata_is_new and not await self._look_at_topics(deadline):
                return False
            if self._state.is_out:
                if not self._subscribed():
                    return True  # a pattern that matches nothing yet
                self._join()
            if self._target_is_new and await self._reconcile(deadline):
                continue
            if self._state.is_joined or self._subscription.assigned:
                return True
            if not await self._wait_for_change(deadline):
                return False
        return False

    async def _wait_for_change(self, deadline: float) -> bool:
        """Wait until a heartbeat brings something new; return False if time ran out."""
        self._changed.clear()
        try:
            async with asyncio.timeout_at(deadline):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    async def _report_lost(self) -> None:
        lost = self._subscription.assigned_partitions()
        _log.info(
            "group %r: lost %d partitions because %s",
            self._settings.group_id,
            len(lost),
            self._state.reason,
        )
        await self._listener.lost(lost)
        self._subscription.revoke(lost)
        self._state.gave_back_all()
        self._listener.raise_failure()

    async def _look_at_topics(self, deadline: float) -> bool:
        """Apply a changed subscription or pattern; return False if time ran out."""
        if not await self._match_topics(deadline):
            return False
        self._metadata_is_new = False
        self._target_is_new = not self._state.is_out  # topic names may be known now
        subscribed = self._subscribed()
        if self._state.is_in and subscribed and subscribed != self._state.subscribed:
            self._state.subscribed = subscribed
            self._heartbeat_now()
        return True

    def _subscribed(self) -> Subscribed:
        subscription = self._subscription
        if subscription.pattern is not None and self._broker_matches:
            regex = broker_regex(subscription.pattern)
            hides = self._settings.exclude_internal_topics
            # The broker would match internal topics, too; only the client can leave them out.
            if not (hides and any(subscription.pattern.match(name) for name in INTERNAL_TOPICS)):
                return Subscribed(regex=regex)
        return Subscribed(topics=tuple(subscription.topics))

    def _join(self) -> None:
        reason = self._state.reason or ""
        _log.info("group %r: joining because %s", self._settings.group_id, reason)
        self._last_reason = reason
        self.counts.rebalance_begins(now_ms())
        self._state.join(self._subscribed())
        self._heartbeat_timer.begin(now_ms())
        self._heartbeat_now()

    async def _reconcile(self, deadline: float) -> bool:
        """Take the next step towards the target; return whether anything changed."""
        change = self._change()
        if change.unknown:
            topics = None if self._subscription.mode is Mode.PATTERN else self._subscription.topics
            try:
                async with asyncio.timeout_at(deadline):
                    await self._client.refresh(topics)
            except (TimeoutError, NetworkError):
                return False
            change = self._change()
        if change.unknown:
            self._client.request_refresh()
        self._target_is_new = False  # the names of the others come with new metadata
        if not change:
            return False
        await self._take_over(change)
        return True

    def _change(self) -> Change:
        names: dict[Uuid, str] = {
            topic.topic_id: name
            for name, topic in self._client.cluster.topics.items()
            if topic.topic_id != ZERO_UUID
        }
        return self._state.change(names)

    async def _take_over(self, change: Change) -> None:
        self.counts.rebalance_begins(now_ms())
        if change.revoked:
            try:
                await self._commit_before("before partitions were revoked")
            except asyncio.CancelledError:
                self._target_is_new = True  # the next poll takes the same step
                raise
            if self._state.is_lost:
                return
        await unbroken(self._take_share(change))

    async def _take_share(self, change: Change) -> None:
        state, subscription = self._state, self._subscription
        if change.revoked:
            await self._listener.revoked(set(change.revoked))
            subscription.revoke(change.revoked)
        state.took_over(change)
        if state.is_lost:  # while the callback ran; the next step reports the rest
            for name in change.added:
                del state.owned[name]
            return
        subscription.assign_from_group(state.owned)
        self._rebalances += 1
        self.counts.rebalance_ends(now_ms())
        self._commits.restart_interval(now_ms())
        _log.info(
            "group %r: member_epoch=%d: %d partitions, %d added and %d revoked",
            self._settings.group_id,
            state.generation,
            len(state.owned),
            len(change.added),
            len(change.revoked),
        )
        await self._listener.assigned(set(change.added))
        self._heartbeat_now()
        self._listener.raise_failure()

    # -- heartbeats

    def _heartbeat_now(self) -> None:
        self._heartbeat_timer.send_now(now_ms())
        self._heartbeat_woken.set()

    async def _heartbeat(self) -> None:
        state, settings = self._state, self._settings
        epoch = state.generation
        try:
            connection = await self._coordinator.connection()
            version = connection.version_of(ConsumerGroupHeartbeatRequest)
            if version < REGEX_VERSION and state.subscribed.regex is not None:
                self._match_in_client(
                    f"the broker supports ConsumerGroupHeartbeat up to version {version}"
                )
                return
            began_ms = now_ms()
            response: ConsumerGroupHeartbeatResponse = await connection.send(
                state.request(settings, version),
                version=version,
                timeout_ms=settings.request_timeout_ms,
            )
        except UnsupportedApiError as failure:
            detail = f"group.protocol=consumer: {failure}; use group.protocol=classic"
            self._fail(refusal(ErrorCode.UNSUPPORTED_VERSION, settings, detail=detail))
            return
        except BarnabasError as failure:
            self._coordinator.lost(str(failure))
            state.resend_all()
            self._heartbeat_failed(str(failure))
            return
        self.counts.heartbeats.record(now_ms() - began_ms)
        if state.concerns(epoch):
            self._act_on(response)

    def _act_on(self, response: ConsumerGroupHeartbeatResponse) -> None:
        """Act on the response to a heartbeat of this epoch."""
        state = self._state
        code = ErrorCode.of(response.error_code)
        action = action_for(CONSUMER_HEARTBEAT, code)
        if action is ErrorAction.NONE:
            state.answered(response)
            self._heartbeat_timer.interval_ms = response.heartbeat_interval_ms
            self._heartbeat_timer.answer(now_ms())
            self._heartbeat_timer.begin(now_ms())
            if state.has_changes:
                self._heartbeat_timer.send_now(now_ms())
            if response.assignment is not None:
                self._target_is_new = True
                self._wake_poll()
            return
        if action in (ErrorAction.RETRY, ErrorAction.FIND):
            if action is ErrorAction.FIND:
                self._coordinator.lost(f"it responded with {code.name}")
            state.resend_all()
            self._heartbeat_failed(f"the response was {code.name}")
        elif code is ErrorCode.INVALID_REGULAR_EXPRESSION and state.subscribed.regex is not None:
            self._match_in_client(response.error_message or code.meaning)
        elif action is ErrorAction.FAIL:
            self._fail(refusal(code, self._settings, detail=response.error_message))
        else:
            _log.info(
                "group %r: ConsumerGroupHeartbeat failed with %s",
                self._settings.group_id,
                code.name,
            )
            state.apply(action, code, "ConsumerGroupHeartbeat")
            self._wake_poll()

    def _match_in_client(self, why: str) -> None:
        """Match the pattern with the topics that the client sees, as the broker cannot."""
        _log.info(
            "group %r: the client matches the pattern, not the broker: %s",
            self._settings.group_id,
            why,
        )
        self._broker_matches = False
        self._metadata_is_new = True
        if self._state.may_commit:
            self._state.subscribed = self._subscribed()
            self._state.resend_all()
        else:
            self._state.leave()  # the next poll rejoins, with topics
        self._wake_poll()

    def _fail(self, failure: Exception) -> None:
        self.counts.rebalance_fails()
        self._fatal = failure
        self._state.lose(str(failure), forget=False)
        self._wake_poll()

    def _wake_poll(self) -> None:
        self._changed.set()
        self._wake()

    def _heartbeats_stopped(self, task: asyncio.Task[None]) -> None:
        super()._heartbeats_stopped(task)
        self._changed.set()

    # -- offsets

    def _identity(self) -> Identity:
        return super()._identity()._replace(by_epoch=True)

    def reader(self) -> Identity:
        """Return the identity for reading committed offsets: a member sends its epoch."""
        return self._identity() if self._state.may_commit else super().reader()

    # -- close

    def _forget_group(self, reason: str) -> Coroutine[Any, Any, None]:
        """End the membership at once; the returned coroutine notifies the group."""
        was_in = self._state.may_commit
        self._state.leave()
        if not self._subscription.assigned:
            self._state.gave_back_all()
        self._changed.set()
        return self._send_leave(was_in)

    async def _send_leave(self, was_in: bool) -> None:
        if not was_in:
            return
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._settings.group_id,
            member_id=self._state.member_id,
            member_epoch=leave_epoch(self._settings),
            instance_id=self._settings.instance_id,
        )
        connection = await self._coordinator.connection()
        response: ConsumerGroupHeartbeatResponse = await connection.send(request)
        code = ErrorCode.of(response.error_code)
        if code is not ErrorCode.NONE:
            _log.info("group %r: leaving failed with %s", self._settings.group_id, code.name)


def broker_regex(pattern: re.Pattern[str]) -> str:
    """Return the pattern for the broker: it matches whole names, Python's `match` a prefix."""
    flags = "i" if pattern.flags & re.IGNORECASE else ""
    return f"(?{flags}:{pattern.pattern}).*"
