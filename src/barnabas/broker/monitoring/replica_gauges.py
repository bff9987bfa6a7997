"""Gauges over all replicas of this broker, and its replica fetchers."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.broker.monitoring.partition_totals import PartitionTotals, count_partitions
from barnabas.broker.monitoring.recent import Recent
from barnabas.broker.partitions.hosted_partitions import HostedPartitions
from barnabas.broker.replication.fetchers import Fetchers
from barnabas.broker.storage.logs import Logs
from barnabas.config.broker import BrokerOptions
from barnabas.metadata.cluster_view import ClusterView
from barnabas.metrics.catalogue import replication as catalogue
from barnabas.metrics.registry import Registry

FETCHERS = "Replica"
"""The client id of all replica fetchers together, as Kafka has it."""


class ReplicaGauges:
    """Reads the partitions once for all gauges of a scrape."""

    def __init__(
        self,
        registry: Registry,
        broker_id: int,
        partitions: HostedPartitions,
        cluster: ClusterView,
        logs: Logs,
        fetchers: Fetchers,
        options: Callable[[], BrokerOptions],
        now_ms: Callable[[], int],
        clock_ms: Callable[[], int],
    ) -> None:
        self._broker_id = broker_id
        self._partitions = partitions
        self._cluster = cluster
        self._logs = logs
        self._fetchers = fetchers
        self._options = options
        self._now_ms = now_ms
        totals = Recent(self._count, clock_ms)
        registry.gauge(catalogue.PARTITIONS, lambda: len(partitions))
        registry.gauge(catalogue.LEADERS, lambda: totals().led)
        registry.gauge(catalogue.UNDER_REPLICATED, lambda: totals().under_replicated)
        registry.gauge(catalogue.UNDER_MIN_ISR, lambda: totals().under_min_isr)
        registry.gauge(catalogue.AT_MIN_ISR, lambda: totals().at_min_isr)
        registry.gauge(catalogue.REASSIGNING, lambda: totals().reassigning)
        registry.gauge(catalogue.PRODUCER_IDS, lambda: totals().producer_ids)
        registry.gauge(catalogue.LATE_TRANSACTIONS, lambda: totals().late_transactions)
        registry.gauge(catalogue.OFFLINE_REPLICAS, self._offline)
        registry.gauge(catalogue.MAX_LAG, self._longest_lag, FETCHERS)
        registry.gauge(catalogue.MIN_FETCH_RATE, self._lowest_rate, FETCHERS)
        registry.gauge(catalogue.FAILED_PARTITIONS, self._failed, FETCHERS)
        registry.gauge(catalogue.DEAD_FETCHERS, self._dead, FETCHERS)

    def _count(self) -> PartitionTotals:
        return count_partitions(
            self._partitions.values(),
            self._broker_id,
            self._now_ms(),
            self._options().transaction_max_timeout_ms,
        )

    def _offline(self) -> int:
        """Count the replicas that are assigned to this broker, and that it does not have."""
        if not self._logs.offline and not self._logs.damaged:
            return 0
        return sum(
            self._broker_id in view.replicas and (topic.name, number) not in self._partitions
            for topic in self._cluster.topics
            for number, view in enumerate(topic.partitions)
        )

    def _longest_lag(self) -> int:
        return max(
            (lag for _, fetcher in self._fetchers.named() for _, lag in fetcher.lags()), default=0
        )

    def _lowest_rate(self) -> float:
        return min(
            (fetcher.fetches_per_second for _, fetcher in self._fetchers.named()), default=0.0
        )

    def _failed(self) -> int:
        return sum(len(fetcher.failed) for _, fetcher in self._fetchers.named())

    def _dead(self) -> int:
        return sum(fetcher.has_crashed for _, fetcher in self._fetchers.named())
