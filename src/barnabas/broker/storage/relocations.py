"""Moves of replicas between the log directories of this broker.

Each move is one task: it copies piece by piece on the executor, no faster than
`replica.alter.log.dirs.io.max.bytes.per.second`, and replaces the log by the copy on the loop once
it has nearly caught up. A move is cancelled when its partition is deleted, a disk fails or the
broker stops: the log stays where it was, and the copy is removed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from barnabas.broker.loop import offload
from barnabas.log.relocation import PIECE_BYTES, Relocation
from barnabas.model.errors import BarnabasError, StorageError
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.storage.logs import Logs
    from barnabas.replication.partition import Partition
    from barnabas.timing.throttle import Throttle

logger = logging.getLogger("barnabas.logs")

LONGEST_REST_MS = 1000
"""The limit may be changed meanwhile."""

ROUNDS_MAX = 8
"""How often a copy is flushed before the last flush is done on the loop, in front of the swap."""


class Move:
    """One move in progress."""

    def __init__(self, relocation: Relocation) -> None:
        self.relocation = relocation
        self.task: asyncio.Task[None] | None = None
        self.reading = False
        """Whether a failure now is one of the source directory."""

    @property
    def target_path(self) -> str:
        """The directory that the log is moved to."""
        return self.relocation.target.path

    @property
    def lag(self) -> int:
        """How many offsets are still to be copied."""
        return self.relocation.lag

    @property
    def size_bytes(self) -> int:
        """How many bytes are copied."""
        return self.relocation.size_bytes


class Relocations:
    """The moves of one broker."""

    def __init__(
        self,
        logs: Logs,
        executor: Executor | None,
        now_ms: Callable[[], int],
        clock_ms: Callable[[], int],
        *,
        throttle: Throttle,
        stop_compaction: Callable[[TopicPartition], Awaitable[None]],
        on_failure: Callable[[str, StorageError], None],
    ) -> None:
        """Limit moves by `throttle`; `on_failure` is called with the directory that failed."""
        self.in_progress: dict[TopicPartition, Move] = {}
        self._logs = logs
        self._executor = executor
        self._now_ms = now_ms
        self._clock_ms = clock_ms
        self._throttle = throttle
        self._stop_compaction = stop_compaction
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, partition: Partition, path: str) -> None:
        """Move a partition's log to another directory; cancels a move to a different one."""
        key = partition.topic_partition
        current = self.in_progress.get(key)
        if current is not None and current.target_path == path:
            return
        self.cancel(key)
        relocation = self._logs.relocation(key, path, self._now_ms())
        if relocation is None:
            return
        move = Move(relocation)
        self.in_progress[key] = move
        task = asyncio.get_running_loop().create_task(self._run(partition, move))
        move.task = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel(self, key: TopicPartition) -> None:
        """Cancel the move of a partition, if there is one."""
        move = self.in_progress.pop(key, None)
        if move is not None and move.task is not None:
            move.task.cancel()

    def cancel_to(self, path: str) -> None:
        """Cancel the moves to a directory that failed."""
        for key in [key for key, move in self.in_progress.items() if move.target_path == path]:
            self.cancel(key)

    async def stop(self) -> None:
        """Cancel all moves and wait for them to end."""
        for key in list(self.in_progress):
            self.cancel(key)
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _run(self, partition: Partition, move: Move) -> None:
        relocation = move.relocation
        key = partition.topic_partition
        try:
            await self._catch_up(move)
            await self._stop_compaction(key)
            log = relocation.finish(self._now_ms())
        except asyncio.CancelledError:
            self._logs.remove_later(relocation.abandon(), 0)
            raise
        except BarnabasError as failure:
            logger.error(
                "%s: move to %s failed, the log stays in %s: %s",
                key,
                move.target_path,
                relocation.source.path,
                failure,
            )
            del self.in_progress[key]
            self._logs.remove_later(relocation.abandon(), 0)
            if isinstance(failure, StorageError):
                failed = relocation.source if move.reading else relocation.target
                self._on_failure(failed.path, failure)
            return
        del self.in_progress[key]
        partition.log = log
        try:
            old = relocation.retire()
            self._logs.remove_later(old, log.options.file_delete_delay_ms)
        except StorageError as failure:
            logger.error("%s: old log in %s not removed: %s", key, relocation.source.path, failure)
            self._on_failure(relocation.source.path, failure)
        logger.info("%s: moved from %s to %s", key, relocation.source.path, move.target_path)

    async def _catch_up(self, move: Move) -> None:
        """Return when the rest is small and what the source has flushed is safe in the copy."""
        relocation = move.relocation
        for _ in range(ROUNDS_MAX):
            while (piece := relocation.next_piece(self._now_ms())) is not None:
                move.reading = True
                try:
                    data = await offload(self._executor, piece.read)
                finally:
                    piece.release()
                move.reading = False
                await offload(self._executor, relocation.copy, data, self._now_ms())
                size = len(data)
                await self._keep_to_limit(size)
                if size < PIECE_BYTES and relocation.is_safe:
                    break
            flush = relocation.future.begin_flush()
            if flush is not None:
                try:
                    await offload(self._executor, flush.run)
                finally:
                    relocation.future.finish_flush(flush, self._now_ms())
            if relocation.is_safe:
                return

    async def _keep_to_limit(self, size: int) -> None:
        """Sleep until all moves together are within the limit."""
        throttle, clock_ms = self._throttle, self._clock_ms
        throttle.record(size, clock_ms())
        wait_ms = throttle.wait_ms(clock_ms())
        while wait_ms:
            await asyncio.sleep(min(wait_ms, LONGEST_REST_MS) / 1000)
            wait_ms = throttle.wait_ms(clock_ms())
