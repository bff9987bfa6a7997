"""Metrics of the log cleaners: Kafka's gauges.

A number "of the last run" is the maximum over all cleaners; before any run it is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.log.compaction.scheduler import CompactionScheduler
from barnabas.metrics.catalogue import cleaner as catalogue
from barnabas.metrics.registry import Registry
from barnabas.replication.partition import Partition


class LastRun(NamedTuple):
    """The last run of one cleaner."""

    seconds: float
    bytes_read: int
    bytes_written: int
    map_share: float
    delay_ms: int


class CleanerMetrics:
    """The gauges, and the numbers behind those that are kept only here."""

    def __init__(
        self,
        registry: Registry,
        cleaner: CompactionScheduler,
        partitions: Mapping[tuple[str, int], Partition],
        now_ms: Callable[[], int],
    ) -> None:
        self.dead: set[int] = set()  # cleaners that crashed
        self._cleaner = cleaner
        self._partitions = partitions
        self._now_ms = now_ms
        self._last: dict[int, LastRun] = {}
        for metric, read in (
            (catalogue.MAX_DIRTY, lambda: 100 * cleaner.dirty_ratio_max),
            (catalogue.TIME_SINCE_LAST_RUN, self._since_last_run),
            (catalogue.UNCLEANABLE_PARTITIONS, lambda: len(cleaner.uncleanable)),
            (catalogue.UNCLEANABLE_BYTES, self._uncleanable_bytes),
            (catalogue.RECOPY, self._recopy_percent),
            (catalogue.MAX_CLEAN_TIME, lambda: self._highest(lambda run: run.seconds)),
            (
                catalogue.MAX_COMPACTION_DELAY,
                lambda: self._highest(lambda run: run.delay_ms) / 1000,
            ),
            (
                catalogue.MAX_BUFFER_UTILIZATION,
                lambda: 100 * self._highest(lambda run: run.map_share),
            ),
            (catalogue.DEAD_THREADS, lambda: len(self.dead)),
        ):
            registry.gauge(metric, read)

    def ran(self, number: int, run: LastRun) -> None:
        """Record a run of a cleaner."""
        self._last[number] = run

    def _highest(self, of: Callable[[LastRun], float]) -> float:
        return max(map(of, self._last.values()), default=0)

    def _since_last_run(self) -> float:
        chosen_ms = self._cleaner.chosen_ms
        return 0 if chosen_ms is None else self._now_ms() - chosen_ms

    def _uncleanable_bytes(self) -> float:
        hosted = (self._partitions.get(key) for key in self._cleaner.uncleanable)
        return sum(partition.log.size_bytes for partition in hosted if partition is not None)

    def _recopy_percent(self) -> float:
        read = sum(run.bytes_read for run in self._last.values())
        written = sum(run.bytes_written for run in self._last.values())
        return 100 * written / read if read else 0.0
