"""The controller: it alone writes topics, leaders and configs into the coordination tree.

A change is first durable in the tree, then told to the brokers through `Effects`. On a broker
with embedded coordination there is one broker and it is the controller from its start. Calls must
not overlap: whoever drives a controller hands it one request at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from barnabas.controller import nodes
from barnabas.controller.cluster import NO_LEADER, ClusterView, PartitionView, TopicView
from barnabas.controller.topics import (
    assign_replicas,
    check_assignment,
    check_collision,
    check_counts,
    check_name,
)
from barnabas.coordination.contract import (
    BadVersion,
    Coordination,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Operation,
    Set,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import ZERO_UUID, Uuid, new_uuid

logger = logging.getLogger("barnabas.controller")

PRODUCER_ID_BLOCK_SIZE = 1000
WRITES_PER_MULTI = 1000


class Effects(Protocol):
    """What the controller's decisions do to the brokers."""

    async def topic_changed(self, topic: TopicView, configs: Mapping[str, str]) -> None:
        """A topic is new, or has new partitions or leaders."""

    async def topic_deleted(self, topic: TopicView) -> None:
        """A topic is gone."""

    def configs_changed(self, entity_type: str, name: str, configs: Mapping[str, str]) -> None:
        """The dynamic configs of a topic or broker are now these."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; counts are resolved, -1 is gone."""

    name: str
    partitions: int
    replication_factor: int
    assignment: Mapping[int, Sequence[int]] = field(default_factory=dict)
    configs: Mapping[str, str] = field(default_factory=dict)
    topic_id: Uuid | None = None
    """The id, where something is prepared under it; otherwise a new one is drawn."""
    leader_epochs: Mapping[int, int] = field(default_factory=dict)
    """Where a partition's first leader epoch is not 0, because it begins with older records."""


class Controller:
    """Decides on topics, partitions and configs of one cluster."""

    def __init__(
        self,
        coordination: Coordination,
        broker_id: int,
        cluster: ClusterView,
        effects: Effects,
        now_ms: Callable[[], int],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self.epoch = 0
        self._tree = coordination
        self._broker_id = broker_id
        self._cluster = cluster
        self._effects = effects
        self._now_ms = now_ms
        self._random_bytes = random_bytes

    async def elect(self) -> bool:
        """Try to become the controller: create `/controller` and raise the epoch, or neither."""
        try:
            data, stat = await self._tree.get(nodes.CONTROLLER_EPOCH)
            epoch = int(data)
        except NoNode:
            await self._tree.create(nodes.CONTROLLER_EPOCH, b"0")
            epoch, version = 0, 0
        else:
            version = stat.version
        claim = nodes.encode_controller(self._broker_id, self._now_ms())
        try:
            await self._tree.multi(
                [
                    Create(nodes.CONTROLLER, claim, ephemeral=True),
                    Set(nodes.CONTROLLER_EPOCH, str(epoch + 1).encode(), version),
                ]
            )
        except (NodeExists, BadVersion):
            return False
        self.epoch = epoch + 1
        self._cluster.controller_id = self._broker_id
        return True

    async def load(self) -> None:
        """Read all topics and their configs, give every partition a leader, and tell the brokers.

        A leader's new life is a new epoch: what an unclean stop cost can then be told apart.
        """
        writes: list[Operation] = []
        loaded = [
            await self._load_topic(n, writes) for n in await self._tree.children(nodes.TOPICS)
        ]
        for start in range(0, len(writes), WRITES_PER_MULTI):
            await self._tree.multi(writes[start : start + WRITES_PER_MULTI])
        for topic in loaded:
            await self._effects.topic_changed(topic, await self._configs("topics", topic.name))
        for name in await self._tree.children(nodes.DELETE_TOPICS):
            await self.delete_topic(name)

    async def create_topics(self, topics: Sequence[NewTopic]) -> list[TopicView]:
        """Create topics that `plan_topic` approved, all or none; return them as they are now."""
        views = [self._planned(topic) for topic in topics]
        operations: list[Operation] = []
        for topic, view in zip(topics, views, strict=True):
            operations += self._creation(topic, view)
        try:
            await self._tree.multi(operations)
        except NodeExists as clash:
            raise RequestError(
                ErrorCode.TOPIC_ALREADY_EXISTS, f"topic already exists: {clash.path}"
            ) from clash
        for topic, view in zip(topics, views, strict=True):
            await self._effects.topic_changed(view, topic.configs)
        return views

    def check_topic(self, topic: NewTopic, others: Sequence[str] = ()) -> None:
        """Raise the protocol's error unless the topic could be created now, beside `others`."""
        check_name(topic.name)
        if self._cluster.topic(topic.name) is not None:
            raise RequestError(
                ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {topic.name!r} already exists"
            )
        check_collision(topic.name, [*self._cluster.topic_names, *others])
        brokers = list(self._cluster.brokers)
        if topic.assignment:
            check_assignment(topic.assignment, brokers)
        else:
            check_counts(topic.partitions, topic.replication_factor, len(brokers))

    async def delete_topic(self, name: str) -> None:
        """Delete a topic: mark it, take it from the brokers, then remove its nodes."""
        topic = self._cluster.topic(name)
        try:
            await self._tree.create(f"{nodes.DELETE_TOPICS}/{name}")
        except NodeExists:
            logger.info("going on with the deletion of topic %s", name)
        if topic is not None:
            await self._effects.topic_deleted(topic)
        await self._remove_tree(nodes.topic_path(name))
        await self._remove_tree(nodes.config_path("topics", name))
        await self._remove_tree(f"{nodes.DELETE_TOPICS}/{name}")

    async def create_partitions(
        self, name: str, count: int, assignment: Mapping[int, Sequence[int]], *, dry_run: bool
    ) -> None:
        """Raise a topic's number of partitions to `count`."""
        topic = self._cluster.topic(name)
        if topic is None:
            raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {name!r}")
        present = len(topic.partitions)
        if count <= present:
            raise RequestError(
                ErrorCode.INVALID_PARTITIONS,
                f"topic {name!r} has {present} partitions; {count} is not more",
            )
        check_counts(count, 1, 1)
        brokers = sorted(self._cluster.brokers)
        width = len(topic.partitions[0].replicas)
        if assignment:
            if len(assignment) != count - present:
                raise RequestError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"{len(assignment)} assignments for {count - present} new partitions",
                )
            check_assignment(assignment, brokers, present)
            added = {number: tuple(replicas) for number, replicas in assignment.items()}
        else:
            first = topic.partitions[0].replicas[0]
            start = brokers.index(first) if first in brokers else 0
            new = range(present, count)
            added = assign_replicas(
                brokers, new, min(width, len(brokers)), start=start, shift=start
            )
        if dry_run:
            return
        views = [*topic.partitions, *(self._led(added[n]) for n in range(present, count))]
        changed = TopicView(name, topic.topic_id, views)
        operations: list[Operation] = [
            Set(nodes.topic_path(name), self._assignment(changed).encode())
        ]
        for partition in range(present, count):
            operations += self._partition_nodes(name, partition, views[partition])
        await self._tree.multi(operations)
        await self._effects.topic_changed(changed, await self._configs("topics", name))

    async def set_configs(self, entity_type: str, name: str, configs: Mapping[str, str]) -> None:
        """Replace the dynamic configs of a topic or broker, and notify."""
        path = nodes.config_path(entity_type, name)
        data = nodes.encode_config(configs)
        notice = Create(
            f"{nodes.CONFIG_CHANGES}/config_change_",
            nodes.encode_config_change(f"{entity_type}/{nodes.sanitized(name)}"),
            sequence=True,
        )
        exists = await self._tree.exists(path) is not None
        change: Operation = Set(path, data) if exists else Create(path, data)
        await self._tree.multi([change, notice])
        self._effects.configs_changed(entity_type, name, configs)

    async def load_configs(self, entity_type: str) -> dict[str, dict[str, str]]:
        """Read the dynamic configs of every entity of a type."""
        names = await self._tree.children(f"/config/{entity_type}")
        return {
            nodes.desanitized(name): await self._configs(entity_type, nodes.desanitized(name))
            for name in names
        }

    async def reserve_producer_ids(self, greatest: int) -> None:
        """Never give out a producer id up to this one: logs of another cluster know it."""
        data, stat = await self._tree.get(nodes.PRODUCER_ID_BLOCK)
        if greatest > nodes.decode_producer_ids(data):
            first = greatest // PRODUCER_ID_BLOCK_SIZE * PRODUCER_ID_BLOCK_SIZE
            last = first + PRODUCER_ID_BLOCK_SIZE - 1
            block = nodes.encode_producer_ids(self._broker_id, first, last)
            await self._tree.set(nodes.PRODUCER_ID_BLOCK, block, stat.version)

    async def allocate_producer_ids(self) -> range:
        """Take the next block of producer ids for this broker."""
        while True:
            data, stat = await self._tree.get(nodes.PRODUCER_ID_BLOCK)
            first = nodes.decode_producer_ids(data) + 1
            last = first + PRODUCER_ID_BLOCK_SIZE - 1
            try:
                await self._tree.set(
                    nodes.PRODUCER_ID_BLOCK,
                    nodes.encode_producer_ids(self._broker_id, first, last),
                    stat.version,
                )
            except BadVersion:
                continue  # another broker took that block
            return range(first, last + 1)

    def _planned(self, topic: NewTopic) -> TopicView:
        if topic.assignment:
            replicas = {number: tuple(held) for number, held in topic.assignment.items()}
        else:
            draw = self._random_bytes(2)
            brokers = list(self._cluster.brokers)
            replicas = assign_replicas(
                brokers,
                range(topic.partitions),
                topic.replication_factor,
                start=draw[0] % len(brokers),
                shift=draw[1] % len(brokers),
            )
        partitions = [
            self._led(replicas[number], topic.leader_epochs.get(number, 0))
            for number in range(len(replicas))
        ]
        return TopicView(topic.name, topic.topic_id or self._new_id(), partitions)

    def _led(self, replicas: Sequence[int], epoch: int = 0) -> PartitionView:
        alive = [broker for broker in replicas if broker in self._cluster.brokers]
        leader = alive[0] if alive else NO_LEADER
        return PartitionView(leader, epoch, tuple(alive), tuple(replicas))

    def _creation(self, topic: NewTopic, view: TopicView) -> list[Operation]:
        config_path = nodes.config_path("topics", topic.name)
        operations: list[Operation] = [
            Create(config_path, nodes.encode_config(topic.configs)),
            Create(nodes.topic_path(topic.name), self._assignment(view).encode()),
            Create(nodes.partitions_path(topic.name)),
        ]
        for partition, state in enumerate(view.partitions):
            operations += self._partition_nodes(topic.name, partition, state)
        return operations

    def _partition_nodes(
        self, topic: str, partition: int, view: PartitionView
    ) -> tuple[Operation, Operation]:
        state = nodes.PartitionState(view.leader, view.leader_epoch, view.isr, self.epoch)
        return (
            Create(nodes.partition_path(topic, partition)),
            Create(nodes.state_path(topic, partition), state.encode()),
        )

    async def _load_topic(self, name: str, writes: list[Operation]) -> TopicView:
        path = nodes.topic_path(name)
        data, _ = await self._tree.get(path)
        assignment = nodes.TopicAssignment.decode(path, data)
        topic_id = assignment.topic_id
        if topic_id == ZERO_UUID:
            topic_id = self._new_id()
            named = nodes.TopicAssignment(
                topic_id, assignment.replicas, assignment.adding, assignment.removing
            )
            writes.append(Set(path, named.encode()))
        if await self._tree.exists(nodes.partitions_path(name)) is None:
            writes.append(Create(nodes.partitions_path(name)))
        partitions = [
            await self._load_partition(name, number, assignment.replicas[number], writes)
            for number in sorted(assignment.replicas)
        ]
        return TopicView(name, topic_id, partitions)

    async def _load_partition(
        self, topic: str, partition: int, replicas: Sequence[int], writes: list[Operation]
    ) -> PartitionView:
        path = nodes.state_path(topic, partition)
        try:
            data, stat = await self._tree.get(path)
        except NoNode:
            view = self._led(replicas)
            writes += self._partition_nodes(topic, partition, view)
            return view
        state = nodes.PartitionState.decode(path, data)
        alive = [r for r in replicas if r in self._cluster.brokers and r in state.isr]
        leader = alive[0] if alive else NO_LEADER
        isr = tuple(alive) or tuple(state.isr)
        renewed = nodes.PartitionState(leader, state.leader_epoch + 1, isr, self.epoch)
        writes.append(Set(path, renewed.encode(), stat.version))
        return PartitionView(leader, renewed.leader_epoch, isr, tuple(replicas))

    async def _configs(self, entity_type: str, name: str) -> dict[str, str]:
        path = nodes.config_path(entity_type, name)
        try:
            data, _ = await self._tree.get(path)
        except NoNode:
            return {}
        return nodes.decode_config(path, data)

    async def _remove_tree(self, path: str) -> None:
        try:
            await self._tree.multi([Delete(each) for each in await self._below(path)])
        except NoNode:
            logger.debug("%s was removed by someone else", path)

    async def _below(self, path: str) -> list[str]:
        """Return a node and all below it, children first."""
        paths: list[str] = []
        for child in await self._tree.children(path):
            paths += await self._below(f"{path}/{child}")
        return [*paths, path]

    def _assignment(self, topic: TopicView) -> nodes.TopicAssignment:
        return nodes.TopicAssignment(
            topic.topic_id,
            {number: view.replicas for number, view in enumerate(topic.partitions)},
        )

    def _new_id(self) -> Uuid:
        return new_uuid(self._random_bytes)
