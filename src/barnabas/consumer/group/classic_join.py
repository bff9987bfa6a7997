"""Joining a classic group: JoinGroup and SyncGroup, until there is an assignment.

Runs on the loop, whether or not the user polls. Errors that can be retried are handled here, by the
tables of `error_actions`; partitions that other members may own by now are left to the user's poll,
which notifies the listener and rejoins.

The leader assigns for all members, by the partitions that it sees; when these change later (new
topics, added partitions), the assignment is out of date and the group has to rebalance.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.assignment.contract import Member, Share
from barnabas.assignment.embedded import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import NetworkError
from barnabas.client.metadata import ClientMetadata
from barnabas.client.retry import Backoff
from barnabas.consumer.group.assignors import Strategy, partition_counts
from barnabas.consumer.group.classic_state import ClassicState
from barnabas.consumer.group.coordinator import JOIN_CHANNEL, Coordinator
from barnabas.consumer.group.counts import GroupCounts
from barnabas.consumer.group.error_actions import JOIN, SYNC, ErrorAction, action_for, refusal
from barnabas.consumer.group.requests import JoinedMember, join_request, sync_request
from barnabas.consumer.group.settings import GroupSettings
from barnabas.consumer.subscription import Subscription
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_log = logging.getLogger(__name__)

JOIN_GRACE_MS: Final = 5_000
"""How much longer than the rebalance timeout a JoinGroup response is waited for."""


class AssignedMetadata(NamedTuple):
    """The topics and partition counts that the leader's assignment is based on."""

    topics: frozenset[str]
    counts: Mapping[str, int]

    def change(self, cluster: ClientMetadata) -> str | None:
        """Return what has changed since, None if nothing has."""
        counts = partition_counts(cluster, self.topics)
        changed = [
            f"{topic} has {counts.get(topic, 0)} partitions, had {self.counts.get(topic, 0)}"
            for topic in sorted(self.topics)
            if counts.get(topic) != self.counts.get(topic)
        ]
        return "; ".join(changed) or None


class ClassicJoin:
    """Joins one member; may be run repeatedly."""

    def __init__(
        self,
        cluster_client: ClusterClient,
        subscription: Subscription,
        settings: GroupSettings,
        coordinator: Coordinator,
        state: ClassicState,
        strategies: Mapping[str, Strategy],
        backoff: Backoff,
        counts: GroupCounts,
    ) -> None:
        self.assigned_by: AssignedMetadata | None = None
        """What this member's assignment is based on as the leader, None if it does not lead."""
        self._client = cluster_client
        self._subscription = subscription
        self._settings = settings
        self._coordinator = coordinator
        self._state = state
        self._strategies = strategies
        self._backoff = backoff
        self._counts = counts

    async def run(self, reason: str | None) -> None:
        """Join until the state has an assignment, or has lost what the user still believes to own.

        Raises errors that no retry resolves.
        """
        failures = 0
        while True:
            try:
                if await self._attempt(reason):
                    return
            except NetworkError as failure:
                self._coordinator.lost(str(failure))
                _log.info(
                    "group %r: joining was interrupted and is retried: %s",
                    self._settings.group_id,
                    failure,
                )
            except RequestError as failure:  # from FindCoordinator
                if not failure.retriable:
                    raise
            else:
                failures = 0
                continue
            failures += 1
            await asyncio.sleep(self._backoff.delay_ms(failures) / 1000)

    async def _attempt(self, reason: str | None) -> bool:
        """Join and sync once; return whether joining is complete."""
        connection = await self._coordinator.connection(JOIN_CHANNEL)
        version = connection.version_of(JoinGroupRequest)
        request = join_request(
            self._settings, self._state.member_id, self._protocols(), reason, version
        )
        timeout_ms = max(
            self._settings.request_timeout_ms,
            max(self._settings.rebalance_ms_max, self._settings.session_timeout_ms) + JOIN_GRACE_MS,
        )
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        response: JoinGroupResponse = await connection.send(
            request, version=version, timeout_ms=timeout_ms
        )
        self._counts.joins.record((loop.time() - began_s) * 1000)
        code = ErrorCode.of(response.error_code)
        if code is not ErrorCode.NONE:
            if action_for(JOIN, code) is ErrorAction.TAKE_ID:
                self._state.take_id(response.member_id)
                return False
            return await self._act_on(action_for(JOIN, code), code, "JoinGroup")
        self._state.joined(response.member_id, response.generation_id)
        assignments = await self._lead(response)
        strategy = self._strategy(response.protocol_name)
        version = connection.version_of(SyncGroupRequest)
        me = JoinedMember(response.member_id, response.generation_id)
        began_s = loop.time()
        answer: SyncGroupResponse = await connection.send(
            sync_request(self._settings, me, strategy.name, assignments, version),
            version=version,
            timeout_ms=timeout_ms,
        )
        self._counts.syncs.record((loop.time() - began_s) * 1000)
        code = ErrorCode.of(answer.error_code)
        if code is not ErrorCode.NONE:
            return await self._act_on(action_for(SYNC, code), code, "SyncGroup")
        share = decode_assignment(answer.assignment)
        strategy.on_assignment(share, response.generation_id)
        self._state.synced(share.partitions)
        return True

    def _protocols(self) -> list[tuple[str, bytes]]:
        """Return each strategy with this member's subscription, owned partitions and user data."""
        state, subscription = self._state, self._subscription
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
                detail=f"the group chose {name!r}",
            )
        return strategy

    async def _lead(self, response: JoinGroupResponse) -> dict[str, bytes]:
        """Assign for all members, if this one leads."""
        self.assigned_by = None
        if response.leader != response.member_id:
            return {}
        members = _members_of(response.members)
        topics = _topics_of(members)
        known = self._client.cluster.topics
        missing = sorted(topic for topic in topics if topic not in known)
        if missing:
            try:
                await self._client.refresh(missing)
            except BarnabasError as failure:  # topics seen later make the group rebalance
                _log.warning(
                    "topics %s: no metadata, so their partitions stay unassigned: %s",
                    ", ".join(missing),
                    failure,
                )
        strategy = self._strategy(response.protocol_name)
        cluster = self._client.cluster
        if response.skip_assignment:  # a static leader is back; its assignment stands
            counts = partition_counts(cluster, topics)
            self.assigned_by = AssignedMetadata(topics, counts)
            return {}
        assignments, self.assigned_by = _assign(strategy, cluster, members)
        return assignments

    async def _act_on(self, action: ErrorAction, code: ErrorCode, request: str) -> bool:
        """Act on an error; return whether joining is complete."""
        if action is ErrorAction.FAIL:
            raise refusal(code, self._settings, strategies=self._strategies)
        _log.info("group %r: %s failed with %s", self._settings.group_id, request, code.name)
        if action is ErrorAction.FIND:
            self._coordinator.lost(f"it responded with {code.name}")
        if action in (ErrorAction.FIND, ErrorAction.RETRY):
            await asyncio.sleep(self._backoff.delay_ms(1) / 1000)
        if action in (ErrorAction.RESET, ErrorAction.FORGET):
            self._state.apply(action, code, request)
            if self._subscription.assigned:
                return True
            self._state.reported_lost()
            self._state.begin_join(self._subscription.topics)
        return False


def _members_of(entries: Sequence[JoinGroupResponseMember]) -> list[Member]:
    """Decode the subscriptions of the members."""
    return [
        decode_subscription(entry.member_id, entry.group_instance_id, entry.metadata)
        for entry in entries
    ]


def _topics_of(members: Sequence[Member]) -> frozenset[str]:
    """Return the topics that any member subscribes to."""
    return frozenset(topic for member in members for topic in member.topics)


def _assign(
    strategy: Strategy, cluster: ClientMetadata, members: Sequence[Member]
) -> tuple[dict[str, bytes], AssignedMetadata]:
    """Assign for all members; every member gets an assignment, even if it is empty."""
    topics = _topics_of(members)
    counts = partition_counts(cluster, topics)
    unknown = sorted(topics - set(counts))
    if unknown:
        _log.warning(
            "topics %s do not exist, so their partitions stay unassigned", ", ".join(unknown)
        )
    shares = strategy.assign(cluster, members)
    assignments = {}
    for member in members:
        share = shares.get(member.member_id, Share(()))
        assignments[member.member_id] = encode_assignment(share.partitions, share.user_data)
    return assignments, AssignedMetadata(topics, counts)
