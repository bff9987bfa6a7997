"""Numbers over all that the controller knows."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from barnabas.controller.knowledge import Knowledge
from barnabas.controller.phases import PartitionPhase, ReplicaPhase


class ClusterTotals(NamedTuple):
    """What Kafka's controller shows; topics that are being deleted count as topics only."""

    topics: int = 0
    partitions: int = 0
    offline: int = 0
    not_preferred: int = 0
    topics_to_delete: int = 0
    replicas_to_delete: int = 0
    topics_ineligible: int = 0
    replicas_ineligible: int = 0
    brokers: int = 0


RUN = 1000
"""How many partitions are counted, at a microsecond each, before the broker may go on."""


def count_cluster(knowledge: Knowledge) -> Generator[None, None, ClusterTotals]:
    """Count everything once, and return the numbers; yield where the broker may go on meanwhile."""
    deleting = knowledge.deleting
    offline = sum(
        key.topic not in deleting
        for key in knowledge.partitions_in(PartitionPhase.NEW, PartitionPhase.OFFLINE)
    )
    not_preferred = 0
    topics = knowledge.topics
    for number, (key, held) in enumerate(list(knowledge.leaderships.items())):
        if number % RUN == RUN - 1:
            yield
        topic = topics.get(key.topic)
        if topic is None or key.topic in deleting:
            continue
        assignment = topic.partitions.get(key.partition)
        if assignment is not None and assignment.replicas[:1] != (held.leader,):
            not_preferred += 1
    to_delete = undeletable = blocked = 0
    for name in list(deleting):
        yield
        if name not in deleting:
            continue  # it is gone by now
        replicas = knowledge.replicas_of(name)
        phases = [knowledge.replica_phase(replica) for replica in replicas]
        to_delete += sum(phase is not ReplicaPhase.DELETED for phase in phases)
        failed = sum(phase is ReplicaPhase.UNDELETABLE for phase in phases)
        undeletable += failed
        blocked += bool(
            failed
            or not knowledge.goes(name)
            or any(broker not in knowledge.brokers for _, broker in replicas)
        )
    return ClusterTotals(
        topics=len(topics),
        partitions=sum(len(topic.partitions) for topic in topics.values()),
        offline=offline,
        not_preferred=not_preferred,
        topics_to_delete=len(deleting),
        replicas_to_delete=to_delete,
        topics_ineligible=blocked,
        replicas_ineligible=undeletable,
        brokers=len(knowledge.brokers),
    )
