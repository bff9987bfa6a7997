"""Gauges over all replicas of this broker, and its replica fetchers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from barnabas.broker.monitoring.family import Family
from barnabas.broker.monitoring.partition_totals import count_partitions
from barnabas.broker.partitions.hosted_partitions import HostedPartitions
from barnabas.broker.replication.fetchers import Fetchers
from barnabas.broker.storage.logs import Logs
from barnabas.config.broker import BrokerOptions
from barnabas.metadata.cluster_view import ClusterView
from barnabas.metrics.catalogue import replication as catalogue
from barnabas.metrics.metric import label_text

FETCHERS = label_text(("clientId",), ("Replica",))
"""The client id of all replica fetchers together, as Kafka has it."""


class ReplicaGauges:
    """A collector; it reads the partitions once for all numbers of a scrape."""

    def __init__(
        self,
        broker_id: int,
        partitions: HostedPartitions,
        cluster: ClusterView,
        logs: Logs,
        fetchers: Fetchers,
        options: Callable[[], BrokerOptions],
        now_ms: Callable[[], int],
    ) -> None:
        self._broker_id = broker_id
        self._partitions = partitions
        self._cluster = cluster
        self._logs = logs
        self._fetchers = fetchers
        self._options = options
        self._now_ms = now_ms

    def collect(self) -> Iterator[Family | None]:
        """Yield the families; see `Collector`."""
        totals = yield from count_partitions(
            list(self._partitions.values()),
            self._broker_id,
            self._now_ms(),
            self._options().transaction_max_timeout_ms,
        )
        yield catalogue.PARTITIONS, [("", totals.hosted)]
        yield catalogue.LEADERS, [("", totals.led)]
        yield catalogue.UNDER_REPLICATED, [("", totals.under_replicated)]
        yield catalogue.UNDER_MIN_ISR, [("", totals.under_min_isr)]
        yield catalogue.AT_MIN_ISR, [("", totals.at_min_isr)]
        yield catalogue.REASSIGNING, [("", totals.reassigning)]
        yield catalogue.PRODUCER_IDS, [("", totals.producer_ids)]
        yield catalogue.LATE_TRANSACTIONS, [("", totals.late_transactions)]
        yield catalogue.OFFLINE_REPLICAS, [("", self._offline())]
        fetchers = [fetcher for _, fetcher in self._fetchers.named()]
        longest = 0
        for fetcher in fetchers:
            longest = max(longest, max((lag for _, lag in fetcher.lags()), default=0))
            yield None
        lowest = min((fetcher.fetches_per_second for fetcher in fetchers), default=0.0)
        failed = sum(len(fetcher.failed) for fetcher in fetchers)
        dead = sum(fetcher.has_crashed for fetcher in fetchers)
        yield catalogue.MAX_LAG, [(FETCHERS, longest)]
        yield catalogue.MIN_FETCH_RATE, [(FETCHERS, lowest)]
        yield catalogue.FAILED_PARTITIONS, [(FETCHERS, failed)]
        yield catalogue.DEAD_FETCHERS, [(FETCHERS, dead)]

    def _offline(self) -> int:
        """Count the replicas that are assigned to this broker, and that it does not have."""
        if not self._logs.offline and not self._logs.damaged:
            return 0
        return sum(
            self._broker_id in view.replicas and (topic.name, number) not in self._partitions
            for topic in self._cluster.topics
            for number, view in enumerate(topic.partitions)
        )
