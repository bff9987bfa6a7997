"""Metrics of the log cleaners: Kafka's gauges.

Their names are Kafka's, after `log_cleaner_`. A number "of the last run" is the maximum over all
cleaners; before any run it is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.log.compaction.scheduler import CompactionScheduler
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
        for name, help, read in (
            (
                "max_dirty_percent",
                "Highest dirty ratio of a compacted log.",
                lambda: 100 * cleaner.dirty_ratio_max,
            ),
            (
                "time_since_last_run_ms",
                "Time since the cleaner last looked for a log to compact.",
                self._since_last_run,
            ),
            (
                "uncleanable_partitions_count",
                "Logs that are no longer compacted because their compaction failed.",
                lambda: len(cleaner.uncleanable),
            ),
            ("uncleanable_bytes", "Size of those logs.", self._uncleanable_bytes),
            (
                "cleaner_recopy_percent",
                "Bytes that the last runs kept, in percent of those they read.",
                self._recopy_percent,
            ),
            (
                "max_clean_time_secs",
                "Duration of the last run.",
                lambda: max((run.seconds for run in self._last.values()), default=0),
            ),
            (
                "max_compaction_delay_secs",
                "How much longer than max.compaction.lag.ms a record waited for the last run.",
                lambda: max((run.delay_ms for run in self._last.values()), default=0) / 1000,
            ),
            (
                "max_buffer_utilization_percent",
                "Part of the offset map that the last run filled.",
                lambda: 100 * max((run.map_share for run in self._last.values()), default=0),
            ),
            (
                "dead_thread_count",
                "Cleaners that crashed.",
                lambda: len(self.dead),
            ),
        ):
            registry.gauge(f"log_cleaner_{name}", help, read)

    def ran(self, number: int, run: LastRun) -> None:
        """Record a run of a cleaner."""
        self._last[number] = run

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
