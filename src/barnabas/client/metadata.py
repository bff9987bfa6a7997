"""The cluster as this client last saw it: brokers, controller, topics, leaders, epochs, ids.

A plain object that is given Metadata responses. It never goes backwards: a partition's
leader is replaced only by one of the same or a later leader epoch (of the same topic id), because
a response from a lagging broker would otherwise send requests to a former leader.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import NO_EPOCH, ZERO_UUID, TopicPartition, Uuid
from barnabas.model.request_errors import request_error

if TYPE_CHECKING:
    from barnabas.wire.messages.metadata import MetadataResponse, MetadataResponsePartition


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """The endpoint of a broker."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition; `leader_id` is -1 while it has none."""

    index: int
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class TopicView:
    """One topic with its partitions, or its error."""

    name: str
    topic_id: Uuid
    internal: bool
    partitions: dict[int, PartitionView]
    error: ErrorCode


class ClientMetadata:
    """Brokers and topics, updated by `apply`; `generation` grows with each change."""

    def __init__(self) -> None:
        self.generation = 0
        self.brokers: dict[int, BrokerAddress] = {}
        self.controller_id: int | None = None
        self.cluster_id: str | None = None
        self.topics: dict[str, TopicView] = {}

    def apply(self, response: MetadataResponse, *, all_topics: bool = False) -> None:
        """Apply a response; with `all_topics`, topics that it does not name are removed."""
        before = (self.brokers, self.controller_id, self.cluster_id, self.topics)
        self.brokers = {
            broker.node_id: BrokerAddress(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in response.brokers
        }
        self.controller_id = response.controller_id if response.controller_id >= 0 else None
        self.cluster_id = response.cluster_id
        received = {
            topic.name: TopicView(
                topic.name,
                topic.topic_id,
                topic.is_internal,
                {
                    partition.partition_index: self._newest(topic.name, topic.topic_id, partition)
                    for partition in topic.partitions
                },
                ErrorCode.of(topic.error_code),
            )
            for topic in response.topics
            if topic.name is not None
        }
        self.topics = received if all_topics else self.topics | received
        if before != (self.brokers, self.controller_id, self.cluster_id, self.topics):
            self.generation += 1

    def forget_brokers(self) -> None:
        """Forget the brokers, so that they are looked up from the bootstrap addresses (KIP-899)."""
        if self.brokers:
            self.brokers, self.controller_id = {}, None
            self.generation += 1

    def update_leader(
        self,
        partition: TopicPartition,
        leader_id: int,
        leader_epoch: int,
        address: BrokerAddress | None = None,
    ) -> bool:
        """Apply a leader named in a Produce or Fetch response; return whether it is newer.

        Then Metadata need not be requested (KIP-951). `address` is that of a leader not known yet.
        """
        topic = self.topics.get(partition.topic)
        known = self.partition(partition)
        if topic is None or known is None or leader_epoch <= known.leader_epoch or leader_id < 0:
            return False
        if address is not None:
            self.brokers = self.brokers | {leader_id: address}
        if leader_id not in self.brokers:
            return False
        newer = replace(known, leader_id=leader_id, leader_epoch=leader_epoch, error=ErrorCode.NONE)
        partitions = topic.partitions | {partition.partition: newer}
        self.topics = self.topics | {topic.name: replace(topic, partitions=partitions)}
        self.generation += 1
        return True

    def _newest(
        self, topic: str, topic_id: Uuid, received: MetadataResponsePartition
    ) -> PartitionView:
        known_topic = self.topics.get(topic)
        if known_topic is not None and known_topic.topic_id == topic_id:
            known = known_topic.partitions.get(received.partition_index)
            # Versions without epochs give -1: then the latest response counts.
            if known is not None and NO_EPOCH < received.leader_epoch < known.leader_epoch:
                return known
        return PartitionView(
            received.partition_index,
            received.leader_id,
            received.leader_epoch,
            tuple(received.replica_nodes),
            tuple(received.isr_nodes),
            tuple(received.offline_replicas),
            ErrorCode.of(received.error_code),
        )

    def partition(self, partition: TopicPartition) -> PartitionView | None:
        """Return the metadata of a partition, if known."""
        topic = self.topics.get(partition.topic)
        return topic.partitions.get(partition.partition) if topic is not None else None

    def leader(self, partition: TopicPartition) -> int | None:
        """Return the leader's node id, if it has one that the cluster lists."""
        view = self.partition(partition)
        return view.leader_id if view is not None and view.leader_id in self.brokers else None

    def missing_leader(self, partition: TopicPartition) -> RequestError:
        """Return the error for a partition without a leader, as far as the reason is known."""
        name = partition.topic
        topic = self.topics.get(name)
        if topic is not None and topic.error not in (
            ErrorCode.NONE,
            ErrorCode.LEADER_NOT_AVAILABLE,
        ):
            return request_error(topic.error, f"topic {name!r}: {topic.error.meaning}")
        if topic is not None and topic.partitions and partition.partition not in topic.partitions:
            return request_error(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {name!r} has no partition {partition.partition}",
            )
        return request_error(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader")

    def leader_epoch(self, partition: TopicPartition) -> int:
        """Return the epoch of a partition's leader, -1 if unknown."""
        view = self.partition(partition)
        return view.leader_epoch if view is not None else NO_EPOCH

    def partitions_for(self, topic: str) -> tuple[int, ...] | None:
        """Return the partitions of a topic in order; None while it is not known to exist."""
        view = self.topics.get(topic)
        return tuple(sorted(view.partitions)) if view is not None and view.partitions else None

    def error_of(self, topic: str) -> ErrorCode:
        """Return the error of a topic, NONE also for an unknown topic."""
        view = self.topics.get(topic)
        return view.error if view is not None else ErrorCode.NONE

    def rack(self, node_id: int) -> str | None:
        """Return the rack of a broker."""
        broker = self.brokers.get(node_id)
        return broker.rack if broker is not None else None

    def by_leader(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[dict[int, list[TopicPartition]], list[TopicPartition]]:
        """Group partitions under their leaders; the second result has those without one."""
        led: dict[int, list[TopicPartition]] = {}
        leaderless: list[TopicPartition] = []
        for partition in partitions:
            leader = self.leader(partition)
            if leader is None:
                leaderless.append(partition)
            else:
                led.setdefault(leader, []).append(partition)
        return led, leaderless

    def topic_id(self, name: str) -> Uuid:
        """Return a topic's id, or the zero uuid if unknown."""
        topic = self.topics.get(name)
        return topic.topic_id if topic is not None else ZERO_UUID
