"""Topics to create, to grow and as described; and the cluster as described."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from barnabas.admin import topics as ours
from barnabas.admin.cluster import ClusterDescription
from barnabas.admin.topic_descriptions import TopicDescription as OurDescription
from barnabas.client.metadata import BrokerAddress
from barnabas.compat.confluent_kafka.admin.acls import AclOperation, operations_of
from barnabas.compat.confluent_kafka.model import Node, TopicPartitionInfo, Uuid, uuid_of


class NewTopic:
    """A topic to create; -1 leaves a number to the broker. Equality is that of all fields."""

    def __init__(
        self,
        topic: str,
        num_partitions: int = -1,
        replication_factor: int = -1,
        replica_assignment: Sequence[Sequence[int]] | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(topic, str):
            raise TypeError(f"topic must be a str, not {type(topic).__name__}")
        self.topic = topic
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.replica_assignment = replica_assignment
        self.config = config

    @property
    def ours(self) -> ours.NewTopic:
        """The topic as our admin client takes it."""
        return ours.NewTopic(
            self.topic,
            self.num_partitions,
            self.replication_factor,
            dict(enumerate(self.replica_assignment or ())),
            dict(self.config or {}),
        )

    def _fields(self) -> tuple[object, ...]:
        return self.topic, self.num_partitions, self.replication_factor

    def __str__(self) -> str:
        shown = "" if self.num_partitions == -1 else f",num_partitions={self.num_partitions}"
        return f"NewTopic(topic={self.topic}{shown})"

    __repr__ = __str__

    def __hash__(self) -> int:
        return hash(self._fields())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NewTopic):
            return NotImplemented
        return self._fields() == other._fields() and (
            self.replica_assignment,
            self.config,
        ) == (other.replica_assignment, other.config)

    def __lt__(self, other: NewTopic) -> bool:
        return self.topic < other.topic


class NewPartitions:
    """The total number of partitions of a topic, and the replicas of the new ones."""

    def __init__(
        self,
        topic: str,
        new_total_count: int,
        replica_assignment: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.topic = topic
        self.new_total_count = new_total_count
        self.replica_assignment = replica_assignment

    @property
    def ours(self) -> ours.NewPartitions:
        """The same as our admin client takes it."""
        return ours.NewPartitions(self.new_total_count, self.replica_assignment)

    def __str__(self) -> str:
        return f"NewPartitions(topic={self.topic},new_total_count={self.new_total_count})"

    __repr__ = __str__

    def __hash__(self) -> int:
        return hash((self.topic, self.new_total_count))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NewPartitions):
            return NotImplemented
        return (self.topic, self.new_total_count, self.replica_assignment) == (
            other.topic,
            other.new_total_count,
            other.replica_assignment,
        )

    def __lt__(self, other: NewPartitions) -> bool:
        return self.topic < other.topic


class TopicDescription:
    """A topic with its partitions, and what the caller may do with it if that was asked for."""

    def __init__(
        self,
        name: str,
        topic_id: Uuid,
        is_internal: bool,
        partitions: list[TopicPartitionInfo],
        authorized_operations: Iterable[int | AclOperation] | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = partitions
        self.authorized_operations = operations_of(authorized_operations)


class DescribeClusterResult:
    """The cluster: brokers, controller, and what the caller may do if that was asked for."""

    def __init__(
        self,
        controller: Node | None,
        nodes: list[Node],
        cluster_id: str | None = None,
        authorized_operations: Iterable[int | AclOperation] | None = None,
    ) -> None:
        self.cluster_id = cluster_id
        self.controller = controller
        self.nodes = nodes
        self.authorized_operations = operations_of(authorized_operations)


def node_of(broker: BrokerAddress) -> Node:
    """Return a broker."""
    return Node(broker.node_id, broker.host, broker.port, broker.rack)


def cluster_of(found: ClusterDescription) -> DescribeClusterResult:
    """Return the cluster as described."""
    nodes = [node_of(broker) for broker in found.brokers]
    controller = next((node for node in nodes if node.id == found.controller_id), None)
    return DescribeClusterResult(controller, nodes, found.cluster_id, found.authorized_operations)


def topic_of(found: OurDescription, brokers: Mapping[int, BrokerAddress]) -> TopicDescription:
    """Return a topic as described."""
    nodes = {number: node_of(broker) for number, broker in brokers.items()}

    def known(numbers: Iterable[int]) -> list[Node]:
        return [nodes.get(number) or Node(number, "", -1) for number in numbers]

    return TopicDescription(
        found.name or "",
        uuid_of(found.topic_id),
        found.internal,
        [
            TopicPartitionInfo(
                each.index, nodes.get(each.leader_id), known(each.replicas), known(each.in_sync)
            )
            for each in found.partitions
        ],
        found.authorized_operations,
    )
