"""The cluster as this client last heard of it: brokers, controller, topics, leaders, epochs, ids.

A plain object that is told of Metadata responses and the time. It never goes back: a partition's
leader is replaced only by news of the same or a later leader epoch (of the same topic id),
because an answer from a broker that lags behind would otherwise send requests to a deposed
leader.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import ZERO_UUID, TopicPartition, Uuid

if TYPE_CHECKING:
    from barnabas.wire.messages.metadata import MetadataResponse, MetadataResponsePartition


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where a broker listens."""

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
    """One topic with its partitions, or the error that stands for it."""

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
        self.updated_ms: int | None = None

    def apply(self, response: MetadataResponse, now_ms: int, *, all_topics: bool = False) -> None:
        """Take over a response; with `all_topics`, topics that it does not name are gone."""
        before = (self.brokers, self.controller_id, self.cluster_id, self.topics)
        self.brokers = {
            broker.node_id: BrokerAddress(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in response.brokers
        }
        self.controller_id = response.controller_id if response.controller_id >= 0 else None
        self.cluster_id = response.cluster_id
        heard = {
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
        self.topics = heard if all_topics else self.topics | heard
        self.updated_ms = now_ms
        if before != (self.brokers, self.controller_id, self.cluster_id, self.topics):
            self.generation += 1

    def forget_brokers(self) -> None:
        """Forget who the brokers are, so that they are looked for from the start (KIP-899)."""
        if self.brokers:
            self.brokers, self.controller_id = {}, None
            self.generation += 1

    def hear_leader(
        self,
        partition: TopicPartition,
        leader_id: int,
        leader_epoch: int,
        address: BrokerAddress | None = None,
    ) -> bool:
        """Take over what an answer to Produce or Fetch says of a leader, if it is news (KIP-951).

        Metadata need not be asked for then. `address` is that of a leader not known so far.
        """
        topic = self.topics.get(partition.topic)
        known = self.partition(partition)
        if topic is None or known is None or leader_epoch <= known.leader_epoch or leader_id < 0:
            return False
        if address is not None:
            self.brokers = self.brokers | {leader_id: address}
        if leader_id not in self.brokers:
            return False
        news = replace(known, leader_id=leader_id, leader_epoch=leader_epoch, error=ErrorCode.NONE)
        partitions = topic.partitions | {partition.partition: news}
        self.topics = self.topics | {topic.name: replace(topic, partitions=partitions)}
        self.generation += 1
        return True

    def _newest(
        self, topic: str, topic_id: Uuid, heard: MetadataResponsePartition
    ) -> PartitionView:
        known_topic = self.topics.get(topic)
        if known_topic is not None and known_topic.topic_id == topic_id:
            known = known_topic.partitions.get(heard.partition_index)
            # Epoch -1 comes from versions that do not tell it: then the last word counts.
            if known is not None and -1 < heard.leader_epoch < known.leader_epoch:
                return known
        return PartitionView(
            heard.partition_index,
            heard.leader_id,
            heard.leader_epoch,
            tuple(heard.replica_nodes),
            tuple(heard.isr_nodes),
            tuple(heard.offline_replicas),
            ErrorCode.of(heard.error_code),
        )

    def partition(self, partition: TopicPartition) -> PartitionView | None:
        """Return what is known of a partition."""
        topic = self.topics.get(partition.topic)
        return topic.partitions.get(partition.partition) if topic is not None else None

    def leader(self, partition: TopicPartition) -> int | None:
        """Return the leader's node id, if it has one that the cluster lists."""
        view = self.partition(partition)
        return view.leader_id if view is not None and view.leader_id in self.brokers else None

    def leader_epoch(self, partition: TopicPartition) -> int:
        """Return the epoch of a partition's leader, -1 where none is known."""
        view = self.partition(partition)
        return view.leader_epoch if view is not None else -1

    def partitions_for(self, topic: str) -> tuple[int, ...] | None:
        """Return the partitions of a topic in order; None while it is not known to exist."""
        view = self.topics.get(topic)
        return tuple(sorted(view.partitions)) if view is not None and view.partitions else None

    def error_of(self, topic: str) -> ErrorCode:
        """Return the error that stands for a topic, NONE also where nothing is known of it."""
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
        """Return a topic's id, or the zero uuid where none is known."""
        topic = self.topics.get(name)
        return topic.topic_id if topic is not None else ZERO_UUID

    def is_stale(self, now_ms: int, age_ms_max: int) -> bool:
        """Tell whether the view is older than `age_ms_max`, or empty."""
        return self.updated_ms is None or now_ms - self.updated_ms > age_ms_max
