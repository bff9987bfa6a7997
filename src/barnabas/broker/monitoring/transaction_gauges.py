"""Gauges of the transaction coordinators: what is open, since when, and what is not complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from barnabas.broker.coordinators.transactions import TransactionHost
from barnabas.broker.monitoring.family import Family
from barnabas.metrics.catalogue import transactions as catalogue


class TransactionGauges:
    """A collector; it reads the transactions once for all numbers of a scrape."""

    def __init__(
        self,
        transactions: TransactionHost,
        now_ms: Callable[[], int],
        clock_ms: Callable[[], int],
    ) -> None:
        self._transactions = transactions
        self._now_ms = now_ms
        self._clock_ms = clock_ms

    def collect(self) -> Iterator[Family]:
        """Yield the families; see `Collector`."""
        host = self._transactions
        ids = is_open = awaited = unsent = uncompleted = 0
        now_ms = oldest_ms = self._now_ms()
        for shard in host.loaded_shards():
            for _, transaction in shard.machine.transactions():
                ids += 1
                if not transaction.state.is_idle:
                    is_open += 1
                    if transaction.start_ms >= 0:
                        oldest_ms = min(oldest_ms, transaction.start_ms)
            backlog = shard.machine.backlog
            awaited += backlog.awaited
            unsent += backlog.unsent
            uncompleted += backlog.uncompleted
        yield catalogue.TRANSACTIONAL_IDS, [("", ids)]
        yield catalogue.OPEN, [("", is_open)]
        yield catalogue.OLDEST_OPEN, [("", (now_ms - oldest_ms) / 1000)]
        yield catalogue.MARKERS_PENDING, [("", awaited)]
        yield catalogue.UNKNOWN_DESTINATION, [("", unsent)]
        yield catalogue.APPEND_RETRIES, [("", uncompleted)]
        yield catalogue.VERIFICATION_FAILURES, [("", host.verification_failures.value)]
        clock_ms = self._clock_ms()
        yield catalogue.LOAD_TIME_MAX, [("", host.load_times.longest_ms(clock_ms))]
        yield catalogue.LOAD_TIME_AVG, [("", host.load_times.average_ms(clock_ms))]
