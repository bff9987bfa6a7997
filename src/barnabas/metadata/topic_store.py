"""Changes of topics, as any broker may request them: nodes that the controller watches.

Creating a topic writes its configs and its assignment; the controller sees the assignment and
elects a leader for every partition. More partitions are a new assignment, a deletion is a node of
its own. A partition that starts with existing records (a fork, an adopted log) also gets its state
written here, without a leader: its first election then continues from that leader epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.coordination.contract import (
    BadVersion,
    Coordination,
    Create,
    NodeExists,
    NoNode,
    Operation,
    Set,
)
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.cluster_view import BrokerView, ClusterView
from barnabas.metadata.replica_placement import assign_replicas, check_assignment, check_counts
from barnabas.metadata.topic_names import check_collision, check_name
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import NO_LEADER, Uuid, new_uuid

NODE_BYTES_MAX = 1_000_000
REQUEST_BYTES_MAX = 512 * 1024
"""For the data of several topics; a ZooKeeper server accepts requests of up to one MiB."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; counts are resolved, never -1."""

    name: str
    partitions: int
    replication_factor: int
    assignment: Mapping[int, Sequence[int]] = field(default_factory=dict)
    configs: Mapping[str, str] = field(default_factory=dict)
    topic_id: Uuid | None = None
    """The id, if something is prepared under it; otherwise a new one is generated."""
    leader_epochs: Mapping[int, int] = field(default_factory=dict)
    """First leader epochs other than 0, of partitions that start with existing records."""


class TopicStore:
    """Writes the nodes of topics."""

    def __init__(
        self,
        tree: Coordination,
        cluster: ClusterView,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._tree = tree
        self._cluster = cluster
        self._random_bytes = random_bytes

    def check(self, topic: NewTopic, others: Sequence[str] = ()) -> None:
        """Raise the protocol's error unless the topic could be created now, along with `others`."""
        check_name(topic.name)
        if self._cluster.topic(topic.name) is not None:
            raise _exists(topic.name)
        check_collision(topic.name, [*self._cluster.topic_names, *others])
        brokers = list(self._cluster.brokers)
        if topic.assignment:
            check_assignment(topic.assignment, brokers)
        else:
            check_counts(topic.partitions, topic.replication_factor, len(brokers))

    async def create(self, topics: Sequence[NewTopic]) -> dict[str, Uuid]:
        """Create topics that `check` approved; return their ids.

        They are created atomically, as far as they fit in one request.
        """
        ids: dict[str, Uuid] = {}
        creations: list[list[Operation]] = []
        for topic in topics:
            ids[topic.name] = topic.topic_id or new_uuid(self._random_bytes)
            creations.append(await self._creation(topic, ids[topic.name]))
        try:
            for operations in _requests(creations):
                await self._tree.multi(operations)
        except NodeExists as clash:
            raise _exists(clash.path.rsplit("/", 1)[-1]) from clash
        return ids

    async def _creation(self, topic: NewTopic, topic_id: Uuid) -> list[Operation]:
        replicas = self._replicas(topic)
        config_path = nodes.config_path("topics", topic.name)
        config = nodes.encode_config(topic.configs)
        # An incomplete deletion may have left the configs of an older topic.
        left = await self._tree.exists(config_path) is not None
        operations: list[Operation] = [
            Set(config_path, config) if left else Create(config_path, config),
            Create(
                nodes.topic_path(topic.name),
                _encoded(topic.name, nodes.TopicAssignment(topic_id, replicas)),
            ),
        ]
        if topic.leader_epochs:
            operations.append(Create(nodes.partitions_path(topic.name)))
        for number, epoch in topic.leader_epochs.items():
            before = nodes.PartitionState(NO_LEADER, epoch - 1, replicas[number], 0)
            operations.append(Create(nodes.partition_path(topic.name, number)))
            operations.append(Create(nodes.state_path(topic.name, number), before.encode()))
        return operations

    def _replicas(self, topic: NewTopic) -> dict[int, tuple[int, ...]]:
        if topic.assignment:
            return {number: tuple(held) for number, held in topic.assignment.items()}
        draw = self._random_bytes(2)
        brokers = self._cluster.brokers
        if not brokers:
            raise RequestError(ErrorCode.BROKER_NOT_AVAILABLE, "no live brokers")
        return assign_replicas(
            _racks(brokers),
            range(topic.partitions),
            topic.replication_factor,
            start=draw[0] % len(brokers),
            shift=draw[1] % len(brokers),
        )

    async def extend(
        self, name: str, count: int, assignment: Mapping[int, Sequence[int]], *, dry_run: bool
    ) -> None:
        """Raise a topic's number of partitions to `count`."""
        path = nodes.topic_path(name)
        try:
            check_name(name)
            data, stat = await self._tree.get(path)
        except (NoNode, RequestError):
            raise RequestError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r} does not exist"
            ) from None
        node = nodes.TopicAssignment.decode(path, data)
        present = len(node.replicas)
        if not present or sorted(node.replicas) != list(range(present)):
            raise RequestError(
                ErrorCode.INVALID_PARTITIONS,
                f"node {path} was modified: partitions {sorted(node.replicas)} are not consecutive "
                "from 0",
            )
        if count <= present:
            raise RequestError(
                ErrorCode.INVALID_PARTITIONS,
                f"topic {name!r} already has {present} partitions; the new count {count} must be "
                "larger",
            )
        check_counts(count, 1, 1)
        if node.adding or node.removing:
            raise RequestError(
                ErrorCode.REASSIGNMENT_IN_PROGRESS, f"topic {name!r} is being reassigned"
            )
        added = self._added(node, present, count, assignment)
        grown = nodes.TopicAssignment(node.topic_id, {**node.replicas, **added})
        data = _encoded(name, grown)
        if dry_run:
            return
        try:
            await self._tree.set(path, data, stat.version)
        except BadVersion as failure:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"topic {name!r} was changed concurrently: try again"
            ) from failure

    def _added(
        self,
        node: nodes.TopicAssignment,
        present: int,
        count: int,
        assignment: Mapping[int, Sequence[int]],
    ) -> dict[int, tuple[int, ...]]:
        brokers = sorted(self._cluster.brokers)
        factor = len(node.replicas[0])
        if assignment:
            if len(assignment) != count - present:
                raise RequestError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"{len(assignment)} assignments for {count - present} new partitions",
                )
            check_assignment(assignment, brokers, present)
            given = len(next(iter(assignment.values())))
            if given != factor:
                raise RequestError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"new partitions have {given} replicas; existing partitions have {factor}",
                )
            return {number: tuple(replicas) for number, replicas in assignment.items()}
        check_counts(count, factor, len(brokers))
        first = node.replicas[0][0]
        start = brokers.index(first) if first in brokers else 0
        racks = _racks(self._cluster.brokers)
        return assign_replicas(racks, range(present, count), factor, start=start, shift=start)

    async def is_gone(self, name: str) -> bool:
        """Return whether the topic does not exist, or its deletion was requested."""
        if await self._tree.exists(nodes.topic_path(name)) is None:
            return True
        return await self._tree.exists(f"{nodes.DELETE_TOPICS}/{name}") is not None

    async def request_deletion(self, name: str) -> None:
        """Ask the controller to delete a topic."""
        try:
            await self._tree.create(f"{nodes.DELETE_TOPICS}/{name}")
        except NodeExists:
            return  # already requested


def _encoded(name: str, node: nodes.TopicAssignment) -> bytes:
    """Return a topic's node; raise if it is too large for the coordination service."""
    data = node.encode()
    if len(data) > NODE_BYTES_MAX:
        raise RequestError(
            ErrorCode.INVALID_PARTITIONS,
            f"topic {name!r}: the assignment of {len(node.replicas)} partitions has "
            f"{len(data)} bytes; must be at most {NODE_BYTES_MAX}",
        )
    return data


def _requests(creations: Sequence[Sequence[Operation]]) -> list[list[Operation]]:
    """Pack the operations of topics into as few requests as possible."""
    requests: list[list[Operation]] = []
    filled = REQUEST_BYTES_MAX
    for creation in creations:
        size = sum(len(each.data) for each in creation if isinstance(each, Create | Set))
        if filled + size > REQUEST_BYTES_MAX:
            requests.append([])
            filled = 0
        requests[-1] += creation
        filled += size
    return requests


def _racks(brokers: Mapping[int, BrokerView]) -> dict[int, str | None]:
    return {broker_id: view.rack for broker_id, view in brokers.items()}


def _exists(name: str) -> RequestError:
    return RequestError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name!r} already exists")
