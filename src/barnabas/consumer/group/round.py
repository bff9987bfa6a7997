"""One round of a classic group: JoinGroup and SyncGroup, until an assignment comes.

Runs on the loop, whether or not the user polls. Errors that a round can live with are mended here,
by the remedies' tables; what others own by now is left to the user's poll, which tells the listener
and begins another round.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from barnabas.assignment.contract import Member
from barnabas.assignment.embedded import decode_assignment, encode_subscription
from barnabas.client.errors import NetworkError
from barnabas.client.retry import Backoff
from barnabas.consumer.group import leadership
from barnabas.consumer.group.assignors import partition_counts
from barnabas.consumer.group.classic_state import ClassicState
from barnabas.consumer.group.coordinator import JOIN_CHANNEL, Coordinator
from barnabas.consumer.group.join_requests import Self, join_request, sync_request
from barnabas.consumer.group.leadership import Leadership
from barnabas.consumer.group.refusals import refusal
from barnabas.consumer.group.remedies import JOIN, SYNC, Remedy, remedy
from barnabas.consumer.group.strategy import Strategy
from barnabas.consumer.group.surroundings import Surroundings
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_log = logging.getLogger(__name__)

JOIN_GRACE_MS: Final = 5_000
"""How much longer than the rebalance may take an answer to JoinGroup is waited for."""


class Round:
    """Joins one member; may be run again and again."""

    def __init__(
        self,
        surroundings: Surroundings,
        coordinator: Coordinator,
        state: ClassicState,
        strategies: Mapping[str, Strategy],
    ) -> None:
        self.leadership: Leadership | None = None
        """What the leader saw when it assigned, None if this member does not lead."""
        self._around = surroundings
        self._settings = surroundings.settings
        self._coordinator = coordinator
        self._state = state
        self._strategies = strategies
        self._backoff: Backoff = surroundings.backoff()

    async def run(self, reason: str | None) -> None:
        """Join until the state has an assignment, or lost what the user still believes to own.

        Raises what no retry mends.
        """
        failures = 0
        while True:
            try:
                if await self._attempt(reason):
                    return
            except NetworkError as failure:
                self._coordinator.lost(str(failure))
                _log.info("group %r: joining was cut off: %s", self._settings.group_id, failure)
            except RequestError as failure:  # of the search for the coordinator
                if not failure.retriable:
                    raise
            else:
                failures = 0
                continue
            failures += 1
            await asyncio.sleep(self._backoff.delay_ms(failures) / 1000)

    async def _attempt(self, reason: str | None) -> bool:
        """Join and sync once; tell whether the round is over."""
        connection = await self._coordinator.connection(JOIN_CHANNEL)
        version = connection.version_of(JoinGroupRequest)
        request = join_request(
            self._settings, self._state.member_id, self._protocols(), reason, version
        )
        timeout_ms = max(
            self._settings.request_timeout_ms,
            max(self._settings.rebalance_ms_max, self._settings.session_timeout_ms) + JOIN_GRACE_MS,
        )
        response: JoinGroupResponse = await connection.send(
            request, version=version, timeout_ms=timeout_ms
        )
        code = ErrorCode.of(response.error_code)
        if code is not ErrorCode.NONE:
            if remedy(JOIN, code) is Remedy.TAKE_ID:
                self._state.take_id(response.member_id)
                return False
            return await self._mend(remedy(JOIN, code), code, "JoinGroup")
        self._state.joined(response.member_id, response.generation_id)
        assignments = await self._lead(response)
        strategy = self._strategy(response.protocol_name)
        version = connection.version_of(SyncGroupRequest)
        me = Self(response.member_id, response.generation_id)
        answer: SyncGroupResponse = await connection.send(
            sync_request(self._settings, me, strategy.name, assignments, version),
            version=version,
            timeout_ms=timeout_ms,
        )
        code = ErrorCode.of(answer.error_code)
        if code is not ErrorCode.NONE:
            return await self._mend(remedy(SYNC, code), code, "SyncGroup")
        share = decode_assignment(answer.assignment)
        strategy.on_assignment(share, response.generation_id)
        self._state.synced(share.partitions)
        return True

    def _protocols(self) -> list[tuple[str, bytes]]:
        """Say for each strategy what this member subscribes to, owns, and adds."""
        state, subscription = self._state, self._around.subscription
        topics = subscription.topics
        state.joined_topics = frozenset(topics)
        owned = sorted(subscription.assigned) if state.is_cooperative else ()
        return [
            (
                name,
                encode_subscription(
                    Member(
                        state.member_id,
                        topics,
                        self._settings.instance_id,
                        owned,
                        state.assigned_in,
                        strategy.user_data(topics, state.assigned, state.assigned_in),
                        self._settings.rack_id,
                    )
                ),
            )
            for name, strategy in self._strategies.items()
        ]

    def _strategy(self, name: str | None) -> Strategy:
        strategy = self._strategies.get(name or "")
        if strategy is None:
            raise refusal(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                self._settings,
                strategies=self._strategies,
                told=f"the group chose {name!r}",
            )
        return strategy

    async def _lead(self, response: JoinGroupResponse) -> dict[str, bytes]:
        """Assign for all, if this member leads."""
        self.leadership = None
        if response.leader != response.member_id:
            return {}
        members = leadership.members_of(response.members)
        topics = leadership.topics_of(members)
        known = self._around.cluster_client.cluster.topics
        missing = sorted(topic for topic in topics if topic not in known)
        if missing:
            try:
                await self._around.cluster_client.refresh(missing)
            except BarnabasError as failure:  # seen later, it makes the group meet again
                _log.warning("no metadata of %s: %s", ", ".join(missing), failure)
        strategy = self._strategy(response.protocol_name)
        cluster = self._around.cluster_client.cluster
        if response.skip_assignment:  # a static leader came back; its assignment stands
            counts = partition_counts(cluster, topics)
            self.leadership = Leadership(topics, counts)
            return {}
        assignments, self.leadership = leadership.assign(strategy, cluster, members)
        return assignments

    async def _mend(self, cure: Remedy, code: ErrorCode, request: str) -> bool:
        """Do what an error calls for; tell whether the round is over."""
        if cure is Remedy.FAIL:
            raise refusal(code, self._settings, strategies=self._strategies)
        _log.info("group %r: %s was answered with %s", self._settings.group_id, request, code.name)
        if cure is Remedy.FIND:
            self._coordinator.lost(f"it answered {code.name}")
        if cure in (Remedy.FIND, Remedy.RETRY):
            await asyncio.sleep(self._backoff.delay_ms(1) / 1000)
        if cure in (Remedy.RESET, Remedy.FORGET):
            self._state.apply(cure, code, request)
            if self._around.subscription.assigned:
                return True
            self._state.told_lost()
            self._state.begin_join(self._around.subscription.topics)
        return False
