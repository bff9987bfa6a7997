"""A controller's term on a tree in memory, with brokers that only remember what they are told.

Brokers register by sessions of their own. They answer as real ones do: a role of an epoch that
they know already is refused, and a broker can be told to fail.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Collection

from barnabas.controller.knowledge import Knowledge
from barnabas.controller.outbox import Letter
from barnabas.controller.term import Event, Term
from barnabas.coordination.contract import Coordination, Create, Set
from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.metadata import tree_schema as nodes
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.note import Note
from barnabas.wire.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from barnabas.wire.messages.stop_replica import StopReplicaRequest
from barnabas.wire.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)

LISTENER = "PLAINTEXT"


class ToldBroker:
    """A broker that remembers its roles and what it knows of the cluster."""

    def __init__(self, broker_id: int, session: Coordination) -> None:
        self.broker_id = broker_id
        self.session = session
        self.roles: dict[TopicPartition, LeaderAndIsrPartitionState] = {}
        self.made: set[TopicPartition] = set()
        self.metadata: dict[TopicPartition, UpdateMetadataPartitionState] = {}
        self.brokers: set[int] = set()
        self.deleted: list[TopicPartition] = []
        self.epochs: dict[TopicPartition, list[int]] = {}
        self.failed_disk: set[TopicPartition] = set()
        self.refuses_deletion = False

    def leads(self) -> set[TopicPartition]:
        return {key for key, role in self.roles.items() if role.leader == self.broker_id}

    def take_roles(self, request: LeaderAndIsrRequest) -> dict[TopicPartition, ErrorCode]:
        errors = {}
        for topic in request.topic_states:
            for role in topic.partition_states:
                key = TopicPartition(topic.topic_name, role.partition_index)
                known = self.roles.get(key)
                if key in self.failed_disk:
                    errors[key] = ErrorCode.KAFKA_STORAGE_ERROR
                elif known is not None and role.leader_epoch <= known.leader_epoch:
                    errors[key] = ErrorCode.STALE_CONTROLLER_EPOCH
                else:
                    errors[key] = ErrorCode.NONE
                    self.roles[key] = role
                    self.epochs.setdefault(key, []).append(role.leader_epoch)
                    if role.is_new:
                        self.made.add(key)
        return errors

    def learn(self, request: UpdateMetadataRequest) -> None:
        self.brokers = {broker.id for broker in request.live_brokers}
        for topic in request.topic_states:
            for state in topic.partition_states:
                key = TopicPartition(topic.topic_name, state.partition_index)
                if state.leader == -2:
                    self.metadata.pop(key, None)
                else:
                    self.metadata[key] = state

    def stop(self, request: StopReplicaRequest) -> dict[TopicPartition, ErrorCode]:
        """Stop; returned is what the deletions came to."""
        errors = {}
        for topic in request.topic_states:
            for state in topic.partition_states:
                key = TopicPartition(topic.topic_name, state.partition_index)
                if not state.delete_partition:
                    self.roles.pop(key, None)
                elif self.refuses_deletion:
                    errors[key] = ErrorCode.KAFKA_STORAGE_ERROR
                else:
                    errors[key] = ErrorCode.NONE
                    self.roles.pop(key, None)
                    self.deleted.append(key)
                    self.epochs.pop(key, None)
        return errors


class Office:
    """The store, the brokers, and the controller in office."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.brokers: dict[int, ToldBroker] = {}
        self.unclean: set[str] = set()
        self.deletes_topics = True
        self.letters: list[Letter] = []
        self.notes: list[Note] = []
        self._ids = itertools.count(1)
        self._events: deque[Event] = deque()

    @property
    def knowledge(self) -> Knowledge:
        return self.term.knowledge

    async def open(self, *brokers: int) -> Office:
        self.tree = MemoryCoordination(self.store)
        await self.tree.start()
        for path in nodes.PERSISTENT_PATHS:
            await self.tree.create(path, make_parents=True)
        await self.tree.create(nodes.CONTROLLER_EPOCH, b"0")
        for broker in brokers:
            await self.register(broker)
        await self.take_office()
        return self

    async def register(self, broker_id: int, rack: str | None = None) -> ToldBroker:
        session = MemoryCoordination(self.store)
        await session.start()
        node = nodes.BrokerRegistration(
            [(LISTENER, f"host{broker_id}", 9092)], {LISTENER: "PLAINTEXT"}, rack, 0
        )
        await session.create(nodes.broker_path(broker_id), node.encode(), ephemeral=True)
        self.brokers[broker_id] = ToldBroker(broker_id, session)
        return self.brokers[broker_id]

    async def take_office(self, broker_id: int = 0) -> Term:
        """Begin a term; the one before, if any, has not noticed."""
        data, stat = await self.tree.get(nodes.CONTROLLER_EPOCH)
        epoch = int(data) + 1
        written = await self.tree.set(nodes.CONTROLLER_EPOCH, str(epoch).encode(), stat.version)
        self._events.clear()
        self.epoch = epoch
        self.term = Term(
            self.tree,
            broker_id,
            epoch,
            written.version,
            LISTENER,
            post=lambda event: self._events.append(event) if self.epoch == epoch else None,
            allow_unclean=self._allow_unclean,
            new_topic_id=lambda: next(self._ids).to_bytes(16, "big"),
            deletes_topics=self.deletes_topics,
            note=self.notes.append,
        )
        await self.term.begin()
        self.deliver()
        await self.settle()
        return self.term

    async def _allow_unclean(self, topics: Collection[str]) -> Collection[str]:
        return [topic for topic in topics if topic in self.unclean]

    def deliver(self) -> None:
        """Give the letters of the last event to their brokers, and queue their answers."""
        term = self.term
        for letter in term.letters():
            self.letters.append(letter)
            broker, request = self.brokers.get(letter.broker_id), letter.request
            if broker is None:
                continue
            at = letter.broker_id
            if isinstance(request, LeaderAndIsrRequest):
                roles = broker.take_roles(request)
                self._events.append(lambda at=at, e=roles: term.roles_answered(at, e))  # type: ignore[misc]
            elif isinstance(request, UpdateMetadataRequest):
                broker.learn(request)
            else:
                stops = broker.stop(request)
                self._events.append(lambda at=at, e=stops: term.stop_answered(at, e))  # type: ignore[misc]

    async def settle(self) -> None:
        """Let events follow each other until nothing happens any more."""
        for _ in range(1000):
            if not self._events:
                return
            await self._events.popleft()()
            self.deliver()
        raise AssertionError("the controller does not come to rest")

    async def die(self, broker_id: int) -> None:
        await self.brokers.pop(broker_id).session.close()
        await self.settle()

    async def come(self, broker_id: int) -> ToldBroker:
        broker = await self.register(broker_id)
        await self.settle()
        return broker

    async def create(self, topic: str, *replicas: tuple[int, ...]) -> None:
        await self.create_unseen(topic, *replicas)
        await self.settle()

    async def create_unseen(self, topic: str, *replicas: tuple[int, ...]) -> None:
        """Write a topic's nodes; the controller has not looked yet."""
        node = nodes.TopicAssignment(next(self._ids).to_bytes(16, "big"), dict(enumerate(replicas)))
        await self.tree.multi(
            [
                Create(nodes.config_path("topics", topic), nodes.encode_config({})),
                Create(nodes.topic_path(topic), node.encode()),
            ]
        )

    async def extend(self, topic: str, *replicas: tuple[int, ...]) -> None:
        path = nodes.topic_path(topic)
        data, stat = await self.tree.get(path)
        node = nodes.TopicAssignment.decode(path, data)
        more = dict(enumerate(replicas, len(node.replicas)))
        grown = nodes.TopicAssignment(node.topic_id, {**node.replicas, **more})
        await self.tree.multi([Set(path, grown.encode(), stat.version)])
        await self.settle()

    async def delete(self, topic: str) -> None:
        await self.tree.create(f"{nodes.DELETE_TOPICS}/{topic}")
        await self.settle()

    async def exists(self, path: str) -> bool:
        return await self.tree.exists(path) is not None

    async def node(self, topic: str, partition: int = 0) -> nodes.PartitionState:
        path = nodes.state_path(topic, partition)
        return nodes.PartitionState.decode(path, (await self.tree.get(path))[0])

    async def assignment(self, topic: str) -> nodes.TopicAssignment:
        path = nodes.topic_path(topic)
        return nodes.TopicAssignment.decode(path, (await self.tree.get(path))[0])

    async def check(self) -> None:
        """What must hold whenever the controller is at rest."""
        for key, held in self.knowledge.leaderships.items():
            node = await self.node(*key)
            assert (node.leader, node.leader_epoch, tuple(node.isr)) == held[:3]
            assert set(held.isr) <= set(self.knowledge.replicas(key)), (key, held)
            if held.leader >= 0:
                assert held.leader in held.isr
            for number, broker in self.brokers.items():
                if key.topic in self.knowledge.deleting:
                    continue
                known = broker.metadata[key]
                assert (known.leader, known.leader_epoch) == held[:2], (number, key)
                role = broker.roles.get(key)
                if number in self.knowledge.replicas(key) and number in self.knowledge.live:
                    assert role is not None
                    assert (role.leader, role.leader_epoch) == held[:2], (number, key)
        for broker in self.brokers.values():
            assert broker.brokers == set(self.brokers)
            for epochs in broker.epochs.values():
                assert epochs == sorted(set(epochs)), "epochs only grow"
