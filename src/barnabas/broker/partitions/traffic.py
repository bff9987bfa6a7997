"""The traffic of this broker, per topic and in total.

Each partition refers to the numbers of its topic, so that counting needs no look-up. Totals are
not counted: they are the sum over the topics and of what topics had that are gone. As in Kafka, a
topic has numbers from its first traffic on; those of producers end when this broker leads none of
its partitions any longer, all when it hosts none. That keeps their number bounded, and there are
at most TOPICS_MAX in any case.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from barnabas.replication.partition import Partition
from barnabas.replication.topic_traffic import FIELDS, PRODUCE_FIELDS, TopicTraffic

logger = logging.getLogger("barnabas.broker")

TOPICS_MAX = 10_000
RUN = 1000
"""How many partitions are looked at, at a microsecond each, before the broker may go on."""
OTHER = "__other__"
"""Stands for all topics beyond TOPICS_MAX."""


class Traffic:
    """The numbers of all topics, and those of replication, which are not kept per topic."""

    def __init__(self) -> None:
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        self.reassignment_bytes_in = 0
        """The part of `replication_bytes_in` for a replica that is being added here."""
        self.reassignment_bytes_out = 0
        """The part of `replication_bytes_out` for replicas that are being added."""
        self._topics: dict[str, TopicTraffic] = {}
        self._gone = TopicTraffic()

    def of(self, partition: Partition) -> TopicTraffic:
        """Return the numbers of a partition's topic, and have the partition refer to them."""
        traffic = partition.traffic
        if traffic is None:
            topic = partition.topic_partition.topic
            if topic not in self._topics and len(self._topics) >= TOPICS_MAX:
                if OTHER not in self._topics:
                    logger.warning(
                        "metrics of topics: more than %d have traffic, the rest is counted as %s",
                        TOPICS_MAX,
                        OTHER,
                    )
                topic = OTHER
            traffic = self._topics.get(topic)
            if traffic is None:
                traffic = self._topics[topic] = TopicTraffic()
            partition.traffic = traffic
        return traffic

    def replicated_in(self, partition: Partition, size_bytes: int, broker_id: int) -> None:
        """Count bytes that this broker has copied from a leader."""
        self.replication_bytes_in += size_bytes
        if broker_id in partition.adding:
            self.reassignment_bytes_in += size_bytes

    def replicated_out(self, partition: Partition, size_bytes: int, follower: int) -> None:
        """Count bytes that are sent to a follower."""
        self.replication_bytes_out += size_bytes
        if follower in partition.adding:
            self.reassignment_bytes_out += size_bytes

    def topic_deleted(self, topic: str) -> None:
        """Drop the numbers of a topic; the totals keep them."""
        traffic = self._topics.pop(topic, None)
        if traffic is not None:
            traffic.move(FIELDS, self._gone)

    def keep(self, hosted: Iterable[Partition]) -> Iterator[None]:
        """Drop the numbers of topics that are not hosted or led any longer.

        Yield now and then, where the broker may go on: topics that come meanwhile are kept.
        """
        known, partitions = list(self._topics.items()), list(hosted)
        topics: dict[str, bool] = {}
        for first in range(0, len(partitions), RUN):
            for partition in partitions[first : first + RUN]:
                if partition.traffic is not None:
                    topic = partition.topic_partition.topic
                    topics[topic] = topics.get(topic, False) or partition.is_assigned_leader
            yield
        for topic, traffic in known:
            if topic == OTHER:
                continue
            if topic not in topics:
                self.topic_deleted(topic)
            elif not topics[topic]:
                traffic.move(PRODUCE_FIELDS, self._gone)

    def of_topic(self, topic: str) -> TopicTraffic | None:
        """Return the numbers of a topic; None if it had no traffic."""
        return self._topics.get(topic)

    def by_topic(self, field: str) -> Iterator[tuple[str, int]]:
        """Yield topics and one of their numbers, where it is not 0."""
        for topic, traffic in list(self._topics.items()):
            value = getattr(traffic, field)
            if value:
                yield topic, value

    def total(self, field: str) -> int:
        """Return one number in total, since the start."""
        of_topics: int = sum(getattr(each, field) for each in self._topics.values())
        gone: int = getattr(self._gone, field)
        return of_topics + gone
