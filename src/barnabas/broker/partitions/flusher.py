"""Grouped flushes: one fsync round at a time, off the loop, for all partitions that asked.

A produce that must be durable is parked until the round that covers it has ended. While one round
runs, the appends of the next one gather, so that under load many records share one fsync.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from time import perf_counter

from barnabas.broker.loop import offload
from barnabas.log.flush import Flush
from barnabas.log.partition_log import PartitionLog
from barnabas.metrics.instruments import Histogram
from barnabas.model.errors import StorageError
from barnabas.replication.partition import Partition

logger = logging.getLogger("barnabas.logs")


class Flusher:
    """Flushes partitions on an executor and reports when they are done."""

    def __init__(
        self,
        executor: Executor | None,
        now_ms: Callable[[], int],
        on_flushed: Callable[[Partition], None],
        on_failed: Callable[[Partition, StorageError], None],
        times: Histogram | None = None,
    ) -> None:
        """Flush on an executor; `times` gets the microseconds of each log's flush."""
        self._times = times or Histogram()
        self._executor = executor
        self._now_ms = now_ms
        self._on_flushed = on_flushed
        self._on_failed = on_failed
        self._wanted: dict[Partition, int | None] = {}  # up to which offset; None: the log's end
        self._round: asyncio.Task[None] | None = None
        self._abandoned = False

    def request(self, partition: Partition) -> None:
        """Have a partition flushed to its end in the next round."""
        self._wanted[partition] = None
        self._begin()

    def request_finished(self, partition: Partition) -> None:
        """Have the segments of a partition that are no longer written to flushed."""
        self._wanted.setdefault(partition, partition.log.segments[-1].base_offset)
        self._begin()

    def forget(self, partition: Partition) -> None:
        """Do not flush a partition: it is deleted, and its files are closed."""
        self._wanted.pop(partition, None)

    def _begin(self) -> None:
        if self._round is None and not self._abandoned:
            self._round = asyncio.get_running_loop().create_task(self._run())

    async def abandon(self) -> None:
        """Cancel the current round, and start no other; a flush that has begun ends first."""
        self._abandoned = True
        if self._round is not None:
            self._round.cancel()
            await asyncio.gather(self._round, return_exceptions=True)

    async def drain(self) -> None:
        """Wait until no flush is pending."""
        while self._round is not None:
            await asyncio.wait([self._round])

    async def _run(self) -> None:
        try:
            while self._wanted:
                wanted, self._wanted = self._wanted, {}
                await self._flush(wanted)
        finally:
            self._round = None

    async def _flush(self, wanted: dict[Partition, int | None]) -> None:
        # Remember the log: a copy in another directory may replace it meanwhile.
        flushes: list[tuple[Partition, PartitionLog, Flush]] = []
        refused: list[tuple[Partition, StorageError]] = []
        for partition, up_to in wanted.items():
            log = partition.log
            try:
                flush = log.begin_flush(up_to)
            except StorageError as failure:
                refused.append((partition, failure))
                continue
            if flush is not None:
                flushes.append((partition, log, flush))
        outcomes: list[tuple[StorageError | None, float]] = []
        try:
            gathered = [flush for _, _, flush in flushes]
            outcomes += await offload(self._executor, _flush_all, gathered)
        finally:
            # Also if the round is cancelled: what has reached the disk is flushed.
            for _, log, flush in flushes:
                log.finish_flush(flush, self._now_ms())
        for partition, refusal in refused:
            self._on_failed(partition, refusal)
        for (partition, log, _), (error, seconds) in zip(flushes, outcomes, strict=True):
            if error is None:
                self._times.record(int(seconds * 1e6))
                self._on_flushed(partition)
            elif partition.log is log:
                self._on_failed(partition, error)
            else:
                self._wanted[partition] = None


def _flush_all(flushes: list[Flush]) -> list[tuple[StorageError | None, float]]:
    """Try every flush, whether others fail or not; return how each went, and its seconds.

    Runs on the executor.
    """
    outcomes: list[tuple[StorageError | None, float]] = []
    for flush in flushes:
        began_s = perf_counter()
        failed = None
        try:
            flush.run()
        except StorageError as failure:
            failed = failure
        outcomes.append((failed, perf_counter() - began_s))
    return outcomes
