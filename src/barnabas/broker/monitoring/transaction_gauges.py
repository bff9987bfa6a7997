"""Gauges of the transaction coordinators: what is open, since when, and what is not complete."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from barnabas.broker.coordinators.transactions import TransactionHost
from barnabas.broker.monitoring.recent import Recent
from barnabas.metrics.catalogue import transactions as catalogue
from barnabas.metrics.registry import Registry


class TransactionTotals(NamedTuple):
    """Numbers over all transactional ids."""

    ids: int = 0
    open: int = 0
    oldest_ms: int = 0
    """The age of the transaction that is open for the longest."""
    markers: int = 0
    unsent_markers: int = 0
    uncompleted: int = 0


class TransactionGauges:
    """Reads the transactions once for all gauges of a scrape."""

    def __init__(
        self,
        registry: Registry,
        transactions: TransactionHost,
        now_ms: Callable[[], int],
        clock_ms: Callable[[], int],
    ) -> None:
        self._transactions = transactions
        self._now_ms = now_ms
        totals = Recent(self._count, clock_ms)
        registry.gauge(catalogue.TRANSACTIONAL_IDS, lambda: totals().ids)
        registry.gauge(catalogue.OPEN, lambda: totals().open)
        registry.gauge(catalogue.OLDEST_OPEN, lambda: totals().oldest_ms / 1000)
        registry.gauge(catalogue.MARKERS_PENDING, lambda: totals().markers)
        registry.gauge(catalogue.UNKNOWN_DESTINATION, lambda: totals().unsent_markers)
        registry.gauge(catalogue.APPEND_RETRIES, lambda: totals().uncompleted)
        registry.gauge(
            catalogue.VERIFICATION_FAILURES, lambda: transactions.verification_failures.value
        )
        times = transactions.load_times
        registry.gauge(catalogue.LOAD_TIME_MAX, lambda: times.longest_ms(clock_ms()))
        registry.gauge(catalogue.LOAD_TIME_AVG, lambda: times.average_ms(clock_ms()))

    def _count(self) -> TransactionTotals:
        ids = is_open = markers = unsent = uncompleted = 0
        now_ms = oldest_ms = self._now_ms()
        for shard in self._transactions.loaded_shards():
            for _, transaction in shard.machine.transactions():
                ids += 1
                if not transaction.state.is_idle:
                    is_open += 1
                    if transaction.start_ms >= 0:
                        oldest_ms = min(oldest_ms, transaction.start_ms)
            backlog = shard.machine.backlog
            markers += backlog.awaited
            unsent += backlog.unsent
            uncompleted += backlog.uncompleted
        return TransactionTotals(ids, is_open, now_ms - oldest_ms, markers, unsent, uncompleted)
