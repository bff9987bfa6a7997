"""Retention: deletes expired segments, in steps that do not block the loop.

First the log start offset is raised and checkpointed, with a recovery point that covers what is
deleted; then the segments are removed from the log and their files renamed; then, when no reader
can need them, they are unlinked. A log that is being compacted is skipped until the next check.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from barnabas.broker.loop import offload
from barnabas.metrics.catalogue import logs as catalogue
from barnabas.metrics.registry import Registry
from barnabas.model.errors import CorruptFileError, CorruptRecordError, StorageError
from barnabas.model.note import PartitionNote, unheard

if TYPE_CHECKING:
    from barnabas.broker.partitions.hosted_partitions import HostedPartitions
    from barnabas.broker.storage.logs import Logs
    from barnabas.log.partition_log import PartitionLog
    from barnabas.model.ids import TopicPartition
    from barnabas.replication.partition import Partition

logger = logging.getLogger("barnabas.retention")

LOGS_AT_ONCE = 50
SEGMENTS_AT_ONCE = 16
FLUSH_WAIT_S_MAX = 30.0


class Retention:
    """Checks the logs of a broker, one run at a time."""

    def __init__(
        self,
        logs: Logs,
        partitions: HostedPartitions,
        executor: Executor | None,
        now_ms: Callable[[], int],
        on_failure: Callable[[TopicPartition, StorageError], None],
        metrics: Registry,
        note: PartitionNote = unheard,
    ) -> None:
        self._logs = logs
        self._partitions = partitions
        self._executor = executor
        self._now_ms = now_ms
        self._on_failure = on_failure
        self._note = note
        self._deleted_bytes = metrics.counter(catalogue.RETENTION_BYTES)
        self._deleted_segments = metrics.counter(catalogue.RETENTION_SEGMENTS)
        self._running = False

    async def turn(self) -> None:
        """Delete what has expired by now; does nothing while a run is in progress."""
        if self._running:
            return
        self._running = True
        try:
            expired = await self._find()
            if expired:
                await self._logs.write_checkpoints()
                for partition, log, offset, cause in expired:
                    try:
                        await self._remove(partition, log, offset, cause)
                    except StorageError as failure:
                        if self._is_hosted(partition, log):  # or it was moved in the middle
                            self._failed(partition, failure)
        finally:
            self._running = False

    async def _find(self) -> list[tuple[Partition, PartitionLog, int, str]]:
        """Raise log start offsets; return the logs with segments to delete once that is durable."""
        expired: list[tuple[Partition, PartitionLog, int, str]] = []
        to_flush = False
        for number, partition in enumerate(list(self._partitions.values())):
            if number % LOGS_AT_ONCE == LOGS_AT_ONCE - 1:
                await asyncio.sleep(0)
            log = partition.log
            if log.compacting or not self._is_hosted(partition, log):
                continue
            try:
                now_ms = self._now_ms()
                offset = log.expired_before(now_ms)
                if offset <= log.segments[0].base_offset:
                    continue
                cause = log.expiry_cause()
                log.begin_removal(offset, now_ms)
            except StorageError as failure:
                self._failed(partition, failure)
                continue
            except (CorruptFileError, CorruptRecordError) as failure:
                logger.error("%s: retention skipped: %s", partition.topic_partition, failure)
                continue
            expired.append((partition, log, offset, cause))
            if log.recovery_point < offset:
                self._partitions.flusher.request_finished(partition)
                to_flush = True
        if to_flush:
            try:
                await asyncio.wait_for(self._partitions.flusher.drain(), FLUSH_WAIT_S_MAX)
            except TimeoutError:
                logger.info(
                    "retention: flush not done in %s s, some segments stay until the next check",
                    FLUSH_WAIT_S_MAX,
                )
        return expired

    async def _remove(
        self, partition: Partition, log: PartitionLog, offset: int, cause: str
    ) -> None:
        count = size_bytes = 0
        while not log.compacting and self._is_hosted(partition, log):
            # Files are renamed without yielding to the loop, so that the log cannot be deleted and
            # recreated in between.
            before = log.segments
            sizes = [segment.size_bytes for segment in before[:SEGMENTS_AT_ONCE]]
            paths = log.remove_before(offset, SEGMENTS_AT_ONCE)
            if not paths:
                break
            removed = len(before) - len(log.segments)
            count += removed
            self._deleted_segments.add(removed)
            size_bytes += sum(sizes[:removed])
            self._deleted_bytes.add(sum(sizes[:removed]))
            self._logs.unlink_later(paths, log.options.file_delete_delay_ms)
            await offload(self._executor, self._logs.flush_directory, log.directory)
        log.finish_removal()
        if count:
            numbers = {
                "segments": count,
                "bytes": size_bytes,
                "offset": log.log_start_offset,
                "retention_ms": log.options.retention_ms,
                "retention_bytes": log.options.retention_bytes,
            }
            self._note("segment.deleted", log.topic_partition, cause, numbers)
            logger.info(
                "%s: log start offset is now %d, segments deleted: %d",
                log.topic_partition,
                log.log_start_offset,
                count,
            )

    def _is_hosted(self, partition: Partition, log: PartitionLog) -> bool:
        hosted = self._partitions.get(partition.topic_partition)
        return hosted is partition and partition.log is log

    def _failed(self, partition: Partition, failure: StorageError) -> None:
        if self._partitions.get(partition.topic_partition) is partition:
            logger.error("%s: deleting segments failed: %s", partition.topic_partition, failure)
            self._on_failure(partition.topic_partition, failure)
