"""The series of each partition: where it is led, where it has a replica, where it is followed.

What is about a partition comes from its leader. The controller speaks for those without one. So
sums over the brokers count everything once.

Label texts are made as they are needed: nothing here takes long at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import TypeAlias

from barnabas.broker.cluster.controller_host import ControllerHost
from barnabas.broker.monitoring.family import RUN, Family
from barnabas.broker.monitoring.label_texts import LabelTexts
from barnabas.broker.monitoring.leaderless import Leaderless, leaderless
from barnabas.broker.partitions.hosted_partitions import HostedPartitions
from barnabas.broker.replication.fetchers import Fetchers
from barnabas.metadata.cluster_view import ClusterView
from barnabas.metrics.catalogue import cluster as exporter
from barnabas.metrics.catalogue import logs, replication
from barnabas.metrics.metric import Metric
from barnabas.replication.partition import Partition

Read: TypeAlias = Callable[[Partition], float]
ReadLeaderless: TypeAlias = Callable[[Leaderless], float]


def _under_replicated(partition: Partition) -> int:
    return 1 if partition.is_under_replicated else 0


def _under_min_isr(partition: Partition) -> int:
    return 1 if len(partition.isr) < partition.min_isr else 0


def _at_min_isr(partition: Partition) -> int:
    return 1 if len(partition.isr) == partition.min_isr else 0


def _in_sync(partition: Partition) -> int:
    return len(partition.isr)


def _stable_lag(partition: Partition) -> int:
    log = partition.log
    return log.high_watermark - log.last_stable_offset


def _replicas(partition: Partition) -> int:
    return len(partition.replicas)


def _lacks_any(partition: Partition) -> int:
    return 1 if len(partition.isr) < len(partition.replicas) else 0


def _is_preferred(partition: Partition) -> int:
    return 1 if partition.replicas and partition.replicas[0] == partition.leader else 0


OF_LEADER: tuple[tuple[Metric, Read, ReadLeaderless | None], ...] = (
    (replication.UNDER_REPLICATED_OF, _under_replicated, lambda _: 1),
    (replication.UNDER_MIN_ISR_OF, _under_min_isr, lambda _: 1),
    (replication.AT_MIN_ISR_OF, _at_min_isr, lambda _: 0),
    (
        replication.REPLICAS_OF,
        attrgetter("replication_factor"),
        attrgetter("replicas"),
    ),
    (replication.IN_SYNC_OF, _in_sync, lambda _: 0),
    (replication.STABLE_LAG_OF, _stable_lag, None),
    (exporter.CURRENT_OFFSET, attrgetter("log.high_watermark"), None),
    (exporter.OLDEST_OFFSET, attrgetter("log.log_start_offset"), None),
    (exporter.REPLICAS, _replicas, attrgetter("replicas")),
    (exporter.IN_SYNC, _in_sync, attrgetter("in_sync")),
    (
        exporter.UNDER_REPLICATED,
        _lacks_any,
        lambda each: 1 if each.in_sync < each.replicas else 0,
    ),
    (exporter.LEADER, attrgetter("leader"), lambda _: -1),
    (exporter.LEADER_IS_PREFERRED, _is_preferred, lambda _: 0),
)
"""For each metric how to read it from a led partition, and from one without a leader."""

OF_REPLICA: tuple[tuple[Metric, Read], ...] = (
    (logs.SIZE, attrgetter("log.size_bytes")),
    (logs.SEGMENTS, attrgetter("log.segment_count")),
    (logs.LOG_START, attrgetter("log.log_start_offset")),
    (logs.LOG_END, attrgetter("log.log_end_offset")),
)


class PartitionSeries:
    """A collector; label texts are kept, and values read while they are written."""

    def __init__(
        self,
        broker_id: int,
        partitions: HostedPartitions,
        cluster: ClusterView,
        controller: ControllerHost,
        fetchers: Fetchers,
    ) -> None:
        self._broker_id = broker_id
        self._partitions = partitions
        self._cluster = cluster
        self._controller = controller
        self._fetchers = fetchers
        self._texts = LabelTexts("topic", "partition")
        self._topic_texts = LabelTexts("topic")
        self._follower_texts = LabelTexts("clientId", "topic", "partition")

    def collect(self) -> Iterator[Family | None]:
        """Yield the families; see `Collector`."""
        term = self._controller.term
        unled = leaderless(term.knowledge) if term is not None else []
        keys = list(self._partitions)
        replicas = list(self._partitions.values())
        own = self._broker_id
        led_keys: list[tuple[str, int]] = []
        led: list[Partition] = []
        for first in range(0, len(keys), RUN):
            run = slice(first, first + RUN)
            for key, partition in zip(keys[run], replicas[run], strict=True):
                if partition.leader == own:
                    led_keys.append(key)
                    led.append(partition)
            yield None
        yield exporter.TOPIC_PARTITIONS, self._topics(unled)
        of = self._texts.of
        self._texts.begin()
        for metric, read in OF_REPLICA:
            yield metric, zip(map(of, keys), map(read, replicas), strict=True)
        for metric, read, read_unled in OF_LEADER:
            series: Iterable[tuple[str, float]] = zip(
                map(of, led_keys), map(read, led), strict=True
            )
            if unled and read_unled is not None:
                others = [(of(each[:2]), read_unled(each)) for each in unled]
                series = chain(series, others)
            yield metric, series
        yield replication.FOLLOWER_LAG, self._lags()

    def _topics(self, unled: list[Leaderless]) -> Iterator[tuple[str, float]]:
        """Yield the number of partitions of each topic whose partition 0 is led here, or by no
        broker.
        """
        texts = self._topic_texts
        texts.begin()
        unled_topics = {each.topic for each in unled if each.partition == 0}
        for topic in list(self._cluster.topics):
            first = self._partitions.get((topic.name, 0))
            if topic.name in unled_topics or (
                first is not None and first.leader == self._broker_id
            ):
                yield texts.of((topic.name,)), len(topic.partitions)

    def _lags(self) -> Iterator[tuple[str, float]]:
        texts = self._follower_texts
        texts.begin()
        for name, fetcher in self._fetchers.named():
            for key, lag in fetcher.lags():
                yield texts.of((name, *key)), lag
