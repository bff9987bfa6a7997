"""Compaction of this broker's logs: `log.cleaner.threads` cleaners, one log each at a time.

Code that changes a log runs on the loop. Files are read and written on the cleaner's own thread, of
lower priority, in pieces after which a cleaner may wait (`log.cleaner.io.max.bytes.per.second`, for
all of them together) or stop. A log whose compaction fails is not compacted until the broker
restarts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from barnabas.broker.loop import background_thread
from barnabas.broker.storage.cleaner_metrics import CleanerMetrics, LastRun
from barnabas.log.compaction.scheduler import Cleanable, CompactionScheduler
from barnabas.log.compaction.steps import Aborted, Compacted, Means, Steps, compact
from barnabas.model.errors import BarnabasError, StorageError
from barnabas.model.ids import TopicPartition
from barnabas.model.note import PartitionNote, unheard

if TYPE_CHECKING:
    from barnabas.broker.storage.logs import Logs
    from barnabas.config.broker import BrokerOptions
    from barnabas.metrics.registry import Registry
    from barnabas.replication.partition import Partition

logger = logging.getLogger("barnabas.cleaner")

PAUSE_S_MIN = 0.01
WAIT_S_MAX = 0.1
"""How long a throttled cleaner sleeps before it checks whether it must stop."""


class CompactionWorkers:
    """The cleaners of one broker."""

    def __init__(
        self,
        logs: Logs,
        partitions: Mapping[tuple[str, int], Partition],
        executor: Executor | None,
        options: Callable[[], BrokerOptions],
        now_ms: Callable[[], int],
        metrics: Registry,
        on_failure: Callable[[TopicPartition, StorageError], None],
        note: PartitionNote = unheard,
    ) -> None:
        """Run on an executor; without one, each cleaner gets a thread of its own."""
        self.cleaner = CompactionScheduler()
        self._metrics = CleanerMetrics(metrics, self.cleaner, partitions, now_ms)
        self._logs = logs
        self._partitions = partitions
        self._executor = executor
        self._options = options
        self._now_ms = now_ms
        self._on_failure = on_failure
        self._note = note
        self._workers: dict[int, asyncio.Task[None]] = {}
        self._ended: dict[TopicPartition, asyncio.Event] = {}
        self._stopping = asyncio.Event()
        self._free_at = 0.0  # when the bytes read and written so far are within the rate

    def start(self) -> None:
        """Start as many cleaners as the options say; also called when they change."""
        options = self._options()
        if not options.log_cleaner_enable or self._stopping.is_set():
            return
        for number in range(options.log_cleaner_threads):
            if number not in self._workers:
                self._metrics.dead.discard(number)
                task = asyncio.get_running_loop().create_task(self._work(number))
                self._workers[number] = task

    async def stop(self) -> None:
        """Stop all cleaners, and wait for them; the logs stay as they are."""
        self._stopping.set()
        if self._workers:
            await asyncio.wait(list(self._workers.values()))

    async def stop_for(self, partition: TopicPartition) -> None:
        """Abort the compaction of a partition, and wait until its files are not in use."""
        self.cleaner.pause(partition)
        ended = self._ended.get(partition)
        try:
            if ended is not None:
                await ended.wait()
        finally:
            self.cleaner.resume(partition)
        self.cleaner.forget(partition)

    async def _work(self, number: int) -> None:
        own = None
        executor = self._executor
        if executor is None:
            executor = own = background_thread(f"barnabas-cleaner-{number}")
        try:
            while not self._stopping.is_set() and number < self._options().log_cleaner_threads:
                logs = (partition.log for partition in list(self._partitions.values()))
                found = self.cleaner.begin_next(logs, self._now_ms(), self._cannot_look)
                if found is not None:
                    await self._clean(number, found, executor)
                    continue
                pause_s = max(self._options().log_cleaner_backoff_ms / 1000, PAUSE_S_MIN)
                try:
                    await asyncio.wait_for(self._stopping.wait(), pause_s)
                except TimeoutError:
                    continue
        except Exception:
            # The other cleaners and the broker continue; changed options start this one again.
            self._metrics.dead.add(number)
            logger.exception("log cleaner %d crashed, the others continue", number)
        finally:
            del self._workers[number]
            if own is not None:
                own.shutdown(wait=False)

    async def _clean(self, number: int, found: Cleanable, executor: Executor) -> None:
        log = found.log
        began = asyncio.get_running_loop().time()
        partition, options = log.topic_partition, self._options()
        cleaners = max(options.log_cleaner_threads, 1)
        ended = self._ended[partition] = asyncio.Event()
        reason: str | None = None
        delay_ms = log.options.file_delete_delay_ms

        def is_aborted() -> bool:
            return self._stopping.is_set() or self.cleaner.is_aborted(partition)

        try:
            steps = compact(
                log,
                found.first_dirty,
                found.end,
                Means(
                    options.log_cleaner_dedupe_buffer_size // cleaners,
                    options.log_cleaner_io_buffer_load_factor,
                    options.log_cleaner_io_buffer_size // cleaners,
                ),
                self._now_ms(),
                unlink_later=lambda paths: self._logs.unlink_later(paths, delay_ms),
                is_aborted=is_aborted,
            )
            done = await self._run(steps, executor, is_aborted)
            log.cleaned_offset = done.end_offset
            await self._logs.write_checkpoints()
            seconds = asyncio.get_running_loop().time() - began
            run = LastRun(
                seconds, done.bytes_before, done.bytes_after, done.map_share, found.delay_ms
            )
            self._metrics.ran(number, run)
            logger.info(
                "%s: compacted up to offset %d in %.3f s: bytes_after=%d bytes_before=%d",
                partition,
                done.end_offset,
                seconds,
                done.bytes_after,
                done.bytes_before,
            )
        except Aborted:
            logger.info("%s: compaction stopped", partition)
        except BarnabasError as failure:
            if not is_aborted():
                reason = str(failure)
                self._failed(partition, failure)
        finally:
            self.cleaner.finish(log, reason)
            del self._ended[partition]
            ended.set()

    def _cannot_look(self, partition: TopicPartition, failure: BarnabasError) -> None:
        # Later: a failed disk removes logs, while this loop still iterates over them.
        asyncio.get_running_loop().call_soon(self._failed, partition, failure)

    def _failed(self, partition: TopicPartition, failure: BarnabasError) -> None:
        logger.error("%s: compaction failed, not compacted until restart: %s", partition, failure)
        cause = "storage" if isinstance(failure, StorageError) else "damaged"
        self._note("compaction.failed", partition, cause, {"reason": str(failure)})
        if isinstance(failure, StorageError):
            self._on_failure(partition, failure)

    async def _run(
        self, steps: Steps, executor: Executor, is_aborted: Callable[[], bool]
    ) -> Compacted:
        """Run the file work of a compaction on the executor, and the rest on the loop."""
        loop = asyncio.get_running_loop()
        try:
            work = next(steps)
            while True:
                try:
                    size = await loop.run_in_executor(executor, work)
                    await self._pay(size, is_aborted)
                except Exception as failure:  # noqa: BLE001  # goes on to the generator
                    work = steps.throw(failure)
                else:
                    work = next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    async def _pay(self, size: int, is_aborted: Callable[[], bool]) -> None:
        """Wait until this many bytes are within the rate that all cleaners share."""
        loop = asyncio.get_running_loop()
        rate = max(self._options().log_cleaner_io_max_bytes_per_second, 1.0)
        self._free_at = max(self._free_at, loop.time()) + size / rate
        free_at = self._free_at
        while (wait_s := free_at - loop.time()) > 0 and not is_aborted():  # noqa: ASYNC110
            await asyncio.sleep(min(wait_s, WAIT_S_MAX))
