"""A coordinator that answers from a script, and a member of it, on a virtual clock.

    def scenario(group: ScriptedGroup) -> ...:
        group.answers[JoinGroupRequest] = [...]     # one after the other, then the usual answer

The usual answers are those of a group with one member that leads it and gets what it assigns.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tests.network.scripted_broker import Answer, Asked, ScriptedBroker

from barnabas.client.addresses import Address
from barnabas.client.cluster_client import ClusterClient
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.consumer.core import group_member
from barnabas.consumer.group.callbacks import ConsumerRebalanceListener
from barnabas.consumer.subscription import Subscription
from barnabas.model.ids import TopicPartition
from barnabas.simulation.world import World
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.wire.schema import Message

ADDRESS = Address("broker", 9092)
MEMBER = "member-1"


class Heard(ConsumerRebalanceListener):
    """A listener that remembers."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, set[TopicPartition]]] = []
        self.failing: str | None = None

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self._note("revoked", revoked)

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self._note("assigned", assigned)

    def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        self._note("lost", lost)

    def _note(self, kind: str, partitions: set[TopicPartition]) -> None:
        self.calls.append((kind, partitions))
        if kind == self.failing:
            raise LookupError(f"{kind} went wrong")


class ScriptedGroup:
    """The coordinator's side; `answers` come before the usual ones."""

    def __init__(self) -> None:
        self.answers: dict[type[Message], list[Any]] = defaultdict(list)
        self.topics = {"t": 2}
        self.generation = 0
        self.woken = 0
        self.listener = Heard()
        self.subscription = Subscription()
        usual: dict[type[Message], Callable[[Any, int], Answer]] = {
            FindCoordinatorRequest: self._find,
            MetadataRequest: self._describe,
            JoinGroupRequest: self._join,
            SyncGroupRequest: self._sync,
            HeartbeatRequest: lambda request, version: HeartbeatResponse(),
            LeaveGroupRequest: lambda request, version: LeaveGroupResponse(),
            OffsetCommitRequest: self.commit,
            OffsetFetchRequest: lambda request, version: OffsetFetchResponse(),
            ConsumerGroupHeartbeatRequest: self._consumer_heartbeat,
        }
        self.script = {kind: self._scripted(kind, answer) for kind, answer in usual.items()}
        self.broker: ScriptedBroker | None = None

    def asked(self, kind: type[Message]) -> list[Asked]:
        """Return the requests of one class."""
        assert self.broker is not None
        return self.broker.asked(kind)

    def sent(self, kind: type[Message]) -> list[Any]:
        """Return the messages of one class."""
        return [asked.message for asked in self.asked(kind)]

    def _scripted(
        self, kind: type[Message], usual: Callable[[Any, int], Answer]
    ) -> Callable[[Any, int], Answer]:
        def answer(request: Any, version: int) -> Answer:
            if not self.answers[kind]:
                return usual(request, version)
            scripted = self.answers[kind].pop(0)
            made: Answer = scripted(request, version) if callable(scripted) else scripted
            return made

        return answer

    # -- the usual answers

    def _find(self, request: Any, version: int) -> Message:
        if version < 4:
            return FindCoordinatorResponse(node_id=1, host=ADDRESS.host, port=ADDRESS.port)
        found = Coordinator(
            key=request.coordinator_keys[0],
            node_id=1,
            host=ADDRESS.host,
            port=ADDRESS.port,
            error_code=0,
            error_message=None,
        )
        return FindCoordinatorResponse(coordinators=[found])

    def _describe(self, request: Any, version: int) -> Message:
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host=ADDRESS.host, port=ADDRESS.port)],
            controller_id=1,
            topics=[
                MetadataResponseTopic(
                    name=name,
                    topic_id=topic_id(name),
                    partitions=[
                        MetadataResponsePartition(partition_index=number, leader_id=1)
                        for number in range(count)
                    ],
                )
                for name, count in self.topics.items()
            ],
        )

    def _join(self, request: JoinGroupRequest, version: int) -> Message:
        self.generation += 1
        member_id = request.member_id or MEMBER
        protocol = request.protocols[0]
        mine = JoinGroupResponseMember(member_id=member_id, metadata=protocol.metadata)
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=protocol.name,
            leader=member_id,
            member_id=member_id,
            members=[mine],
        )

    def _sync(self, request: SyncGroupRequest, version: int) -> Message:
        given = {each.member_id: each.assignment for each in request.assignments}
        return SyncGroupResponse(assignment=given.get(request.member_id, b""))

    def commit(self, request: OffsetCommitRequest, version: int, code: int = 0) -> Message:
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetCommitResponsePartition(
                            partition_index=each.partition_index, error_code=code
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def refuse_commit(self, code: int) -> Callable[[Any, int], Message]:
        """Return an answer to a commit with this error for every partition."""
        return lambda request, version: self.commit(request, version, code)

    def _consumer_heartbeat(self, request: Any, version: int) -> Message:
        return ConsumerGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=max(request.member_epoch, 1),
            heartbeat_interval_ms=100,
        )


def topic_id(name: str) -> bytes:
    """Return the id of a topic."""
    return name.encode().ljust(16, b"-")


Scenario = Callable[[ScriptedGroup, Any], Awaitable[None]]


def play(
    scenario: Scenario,
    options: Mapping[str, object] | None = None,
    versions: Mapping[type[Message], tuple[int, int]] | None = None,
    subscribe: Mapping[str, Any] | None = None,
) -> None:
    """Run a scenario with a member of a scripted group, in virtual time."""
    group = ScriptedGroup()
    how = dict(subscribe or {"topics": ["t"]})
    group.subscription.subscribe(listener=group.listener, **how)
    given = {
        "bootstrap.servers": str(ADDRESS),
        "group.id": "g",
        "session.timeout.ms": 1000,
        "heartbeat.interval.ms": 100,
        "max.poll.interval.ms": 3000,
        "enable.auto.commit": False,
        "partition.assignment.strategy": "range",
        **(options or {}),
    }

    async def serve(host: Any) -> None:
        group.broker = ScriptedBroker(group.script, versions, ADDRESS)
        async with group.broker:
            await asyncio.Event().wait()

    def wake() -> None:
        group.woken += 1

    async def run(world: World) -> None:
        client = ClusterClient([ADDRESS], random=world.random)
        member = group_member(
            client,
            group.subscription,
            parse_client_options(ConsumerOptions, given),
            wake=wake,
            random=world.random,
        )
        await member.start()
        try:
            await scenario(group, member)
        finally:
            await member.close(leave=False, timeout_ms=1000)
            await client.close()

    with World(1) as world:
        world.start("broker", serve)
        world.run(run(world), until=600)
