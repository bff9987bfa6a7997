"""The controller's state: brokers, topics, leaders, and the phase of every partition and replica.

Plain data with look-ups. It is loaded from the coordination tree when a controller is elected and
dropped when it resigns; in between it changes only after the tree has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from barnabas.controller.leadership import Assignment, Leadership
from barnabas.controller.phases import (
    PARTITION_BEFORE,
    REPLICA_BEFORE,
    PartitionPhase,
    ReplicaPhase,
)
from barnabas.metadata.cluster_view import BrokerView
from barnabas.model.ids import NO_EPOCH, TopicPartition, Uuid

Replica = tuple[TopicPartition, int]
"""One replica: partition and broker."""


class Topic:
    """A topic's id and assignment, with an index of the partitions being reassigned."""

    __slots__ = ("moving", "partitions", "topic_id")

    def __init__(self, topic_id: Uuid, partitions: Mapping[int, Assignment] | None = None) -> None:
        self.topic_id = topic_id
        self.partitions: dict[int, Assignment] = {}
        self.moving: dict[int, None] = {}
        for number, assignment in (partitions or {}).items():
            self.assign(number, assignment)

    def assign(self, number: int, assignment: Assignment) -> None:
        """Set the assignment of a partition."""
        self.partitions[number] = assignment
        if assignment.is_moving:
            self.moving[number] = None
        else:
            self.moving.pop(number, None)


class Knowledge:
    """The controller's view of its cluster."""

    def __init__(self) -> None:
        self.brokers: dict[int, BrokerView] = {}
        self.shutting_down: set[int] = set()
        self.topics: dict[str, Topic] = {}
        self.leaderships: dict[TopicPartition, Leadership] = {}
        self.deleting: set[str] = set()
        """Topics to be deleted."""
        self._failed: dict[int, set[TopicPartition]] = {}
        self._partitions: dict[TopicPartition, PartitionPhase] = {}
        self._replicas: dict[Replica, ReplicaPhase] = {}

    # -- brokers ------------------------------------------------------------------------------

    @property
    def live(self) -> set[int]:
        """Return the live brokers that are not shutting down."""
        return self.brokers.keys() - self.shutting_down

    def lives(self, broker_id: int, epoch: int) -> bool:
        """Return whether a broker is alive with this broker epoch (-1: any)."""
        view = self.brokers.get(broker_id)
        return view is not None and (epoch == NO_EPOCH or epoch >= view.epoch)

    def serves(self, broker_id: int, key: TopicPartition) -> bool:
        """Return whether a broker is alive and the disk of this replica works."""
        return broker_id in self.brokers and key not in self._failed.get(broker_id, ())

    def serving(self, key: TopicPartition) -> set[int]:
        """Return the brokers that serve a replica of a partition."""
        return {broker for broker in self.live if key not in self._failed.get(broker, ())}

    def disk_failed(self, broker_id: int, keys: Iterable[TopicPartition]) -> None:
        """Mark replicas that a live broker cannot serve."""
        self._failed.setdefault(broker_id, set()).update(keys)

    def disk_works(self, broker_id: int, keys: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Mark replicas as served; return those that were not before."""
        failed = self._failed.get(broker_id, set())
        back = [key for key in keys if key in failed]
        failed.difference_update(back)
        return back

    def broker_gone(self, broker_id: int) -> None:
        """Remove a broker; when it returns, its disks are tried again."""
        self.brokers.pop(broker_id, None)
        self.shutting_down.discard(broker_id)
        self._failed.pop(broker_id, None)

    # -- topics and partitions ----------------------------------------------------------------

    def assignment(self, key: TopicPartition) -> Assignment | None:
        """Return the assignment of a partition."""
        topic = self.topics.get(key.topic)
        return topic.partitions.get(key.partition) if topic is not None else None

    def replicas(self, key: TopicPartition) -> tuple[int, ...]:
        """Return the replicas of a partition, none for an unknown one."""
        assignment = self.assignment(key)
        return assignment.replicas if assignment is not None else ()

    def assign(self, key: TopicPartition, assignment: Assignment) -> None:
        """Set the assignment of a partition of a known topic."""
        self.topics[key.topic].assign(key.partition, assignment)

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions."""
        known = self.topics.get(topic)
        return [TopicPartition(topic, number) for number in known.partitions] if known else []

    @property
    def all_partitions(self) -> Iterator[TopicPartition]:
        """Yield every partition."""
        for name, topic in self.topics.items():
            for number in topic.partitions:
                yield TopicPartition(name, number)

    def partitions_on(self, broker_id: int) -> list[TopicPartition]:
        """Return the partitions with a replica on a broker."""
        return [key for key in self.all_partitions if broker_id in self.replicas(key)]

    @property
    def moving(self) -> list[TopicPartition]:
        """Return the partitions that are being reassigned."""
        return [
            TopicPartition(name, number)
            for name, topic in self.topics.items()
            for number in topic.moving
        ]

    def goes(self, topic: str) -> bool:
        """Return whether a topic is to be deleted, and no reassignment holds that up."""
        return topic in self.deleting and not self.topics[topic].moving

    def forget_topic(self, topic: str) -> None:
        """Remove a topic that no longer exists."""
        for key in self.partitions_of(topic):
            self.leaderships.pop(key, None)
            self._partitions.pop(key, None)
            for broker in self.replicas(key):
                self._replicas.pop((key, broker), None)
                self._failed.get(broker, set()).discard(key)
        self.topics.pop(topic, None)
        self.deleting.discard(topic)

    # -- phases -------------------------------------------------------------------------------

    def phase(self, key: TopicPartition) -> PartitionPhase:
        """Return the phase of a partition."""
        return self._partitions.get(key, PartitionPhase.NON_EXISTENT)

    def partitions_in(self, *phases: PartitionPhase) -> list[TopicPartition]:
        """Return the partitions that are in one of these phases."""
        return [key for key, phase in self._partitions.items() if phase in phases]

    def may_become(self, key: TopicPartition, phase: PartitionPhase) -> bool:
        """Return whether a partition may enter a phase."""
        return self.phase(key) in PARTITION_BEFORE[phase]

    def set_phase(self, key: TopicPartition, phase: PartitionPhase) -> None:
        """Set a partition's phase; the caller has checked the transition, or is loading."""
        if phase is PartitionPhase.NON_EXISTENT:
            self._partitions.pop(key, None)
        else:
            self._partitions[key] = phase

    def replica_phase(self, replica: Replica) -> ReplicaPhase:
        """Return the phase of a replica."""
        return self._replicas.get(replica, ReplicaPhase.NON_EXISTENT)

    def replica_may_become(self, replica: Replica, phase: ReplicaPhase) -> bool:
        """Return whether a replica may enter a phase."""
        return self.replica_phase(replica) in REPLICA_BEFORE[phase]

    def set_replica_phase(self, replica: Replica, phase: ReplicaPhase) -> None:
        """Set a replica's phase."""
        if phase is ReplicaPhase.NON_EXISTENT:
            self._replicas.pop(replica, None)
        else:
            self._replicas[replica] = phase

    def replicas_of(self, topic: str) -> list[Replica]:
        """Return all replicas of a topic."""
        return [(key, broker) for key in self.partitions_of(topic) for broker in self.replicas(key)]
