"""The logs of this broker, over all its directories.

Everything here runs on the loop's thread, except what is handed to the executor: recovery at
start, the removal of deleted logs, writing checkpoints.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial

from barnabas.config.topic import TopicOptions
from barnabas.log.checkpoints import encode_offsets
from barnabas.log.directory import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, LogDirectory
from barnabas.log.file_pool import FilePool
from barnabas.log.files import Files
from barnabas.log.partition_log import PartitionLog
from barnabas.model.errors import ConfigError, StorageError
from barnabas.model.ids import TopicPartition, Uuid

logger = logging.getLogger("barnabas.logs")


FLUSHED_TOGETHER = 8
"""How many logs are flushed at a time when the broker stops: disks like some company."""


class Logs:
    """Opens, places, deletes and checkpoints partition logs."""

    def __init__(
        self,
        files: Files,
        paths: Sequence[str],
        executor: Executor | None,
        random: Callable[[], float],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._files = files
        self._executor = executor
        self._random = random
        self._random_bytes = random_bytes
        pool = FilePool(files)
        self._directories: list[LogDirectory] = []
        try:
            for path in paths:
                self._directories.append(LogDirectory(pool, path))
        except StorageError:
            self.abandon()
            raise
        self._written: dict[str, bytes] = {}

    @property
    def paths(self) -> list[str]:
        """Return the directories."""
        return [directory.path for directory in self._directories]

    @property
    def all(self) -> list[PartitionLog]:
        """Return every log."""
        return [log for directory in self._directories for log in directory.logs.values()]

    def identity(self) -> dict[str, str]:
        """Return what the directories' meta.properties agree on; empty for new ones."""
        known: dict[str, str] = {}
        for directory in self._directories:
            for name, value in (directory.read_meta() or {}).items():
                if known.setdefault(name, value) != value:
                    raise ConfigError(
                        f"{directory.path}/meta.properties says {name}={value}, "
                        f"another directory of log.dirs says {known[name]}"
                    )
        return known

    def write_identity(self, broker_id: int, cluster_id: str) -> None:
        """Mark every directory as this broker's."""
        for directory in self._directories:
            if directory.read_meta() is None:
                directory.write_meta(broker_id, cluster_id)

    async def load(
        self, options_of: Callable[[str], TopicOptions], now_ms: int, threads: int
    ) -> None:
        """Open every log on disk, recovering those of an unclean stop with so many threads."""
        loop = asyncio.get_running_loop()
        for directory in self._directories:
            load = partial(self._load, directory, options_of, now_ms, threads)
            await loop.run_in_executor(self._executor, load)
            if not directory.clean and directory.logs:
                count = len(directory.logs)
                logger.info("%s was not closed cleanly: checked %d logs", directory.path, count)
            for path in directory.leftovers():
                self._purge_later(directory, path, 0)

    def _load(
        self,
        directory: LogDirectory,
        options_of: Callable[[str], TopicOptions],
        now_ms: int,
        threads: int,
    ) -> None:
        if threads == 1 or directory.clean:
            directory.load(options_of, now_ms, random=self._random)
            return
        with ThreadPoolExecutor(threads, "barnabas-recovery") as pool:
            directory.load(options_of, now_ms, random=self._random, each=pool.map)

    def open(
        self, partition: TopicPartition, topic_id: Uuid, options: TopicOptions, now_ms: int
    ) -> PartitionLog:
        """Return a partition's log; a new one goes to the directory with the fewest.

        A log of an older topic of the same name is put aside, never written to.
        """
        directory = self._directory_of(partition)
        if directory is not None:
            log = directory.logs[partition]
            if log.topic_id is None:  # a crash before the first flush can lose the file that says
                log.set_topic_id(topic_id)
            if log.topic_id == topic_id:
                log.configure(options)
                return log
            logger.warning("%s belongs to a topic that was deleted: removing it", partition)
            self._delete(directory, partition, options.file_delete_delay_ms)
        directory = min(self._directories, key=lambda each: len(each.logs))
        return directory.open_log(
            partition, options, now_ms, topic_id=topic_id, random=self._random
        )

    def delete(self, partition: TopicPartition, delay_ms: int) -> None:
        """Take a log out of use now, and remove its files after a while."""
        directory = self._directory_of(partition)
        if directory is not None:
            self._delete(directory, partition, delay_ms)

    def path_of(self, partition: TopicPartition) -> str | None:
        """Return the directory that holds a partition's log."""
        directory = self._directory_of(partition)
        return directory.path if directory is not None else None

    def space(self, path: str) -> tuple[int, int]:
        """Return how many bytes the disk of a directory has, and how many are free."""
        return self._files.space(path)

    async def write_checkpoints(self) -> None:
        """Write down recovery points, log starts and high watermarks, where they changed."""
        loop = asyncio.get_running_loop()
        for directory in self._directories:
            changed: list[tuple[str, bytes]] = []
            for name, data in _checkpoints(directory).items():
                path = f"{directory.path}/{name}"
                if self._written.get(path) != data:
                    changed.append((path, data))
            for path, data in changed:
                await loop.run_in_executor(self._executor, self._files.write_atomic, path, data)
                self._written[path] = data

    async def close(self, now_ms: int, broker_epoch: int) -> None:
        """Stop cleanly: everything flushed and marked as such."""
        loop = asyncio.get_running_loop()
        for directory in self._directories:
            close = partial(self._close, directory, now_ms, broker_epoch)
            await loop.run_in_executor(self._executor, close)

    def _close(self, directory: LogDirectory, now_ms: int, broker_epoch: int) -> None:
        if len(directory.logs) < FLUSHED_TOGETHER or self._executor is None:
            directory.close(now_ms, broker_epoch)
            return
        with ThreadPoolExecutor(FLUSHED_TOGETHER, "barnabas-close") as pool:
            directory.close(now_ms, broker_epoch, each=pool.map)

    def discard_unflushed(self, now_ms: int) -> None:
        """Cut every log at its last flush: what a crash of the machine may take, this does."""
        for log in self.all:
            log.truncate_to(log.recovery_point, now_ms)

    def abandon(self) -> None:
        """Let go without writing anything, as a crash would."""
        for directory in self._directories:
            directory.abandon()

    def _directory_of(self, partition: TopicPartition) -> LogDirectory | None:
        for directory in self._directories:
            if partition in directory.logs:
                return directory
        return None

    def _delete(self, directory: LogDirectory, partition: TopicPartition, delay_ms: int) -> None:
        path = directory.delete_log(partition, self._random_bytes(16).hex())
        self._purge_later(directory, path, delay_ms)

    def _purge_later(self, directory: LogDirectory, path: str, delay_ms: int) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(
            delay_ms / 1000, lambda: loop.run_in_executor(self._executor, _purge, directory, path)
        )


def _checkpoints(directory: LogDirectory) -> dict[str, bytes]:
    logs = directory.logs
    return {
        RECOVERY_POINTS: encode_offsets({key: log.recovery_point for key, log in logs.items()}),
        LOG_STARTS: encode_offsets(
            {
                key: log.log_start_offset
                for key, log in logs.items()
                if log.log_start_offset > log.segments[0].base_offset
            }
        ),
        HIGH_WATERMARKS: encode_offsets({key: log.high_watermark for key, log in logs.items()}),
    }


def _purge(directory: LogDirectory, path: str) -> None:
    try:
        directory.purge(path)
    except StorageError as failure:
        logger.error("a deleted log stays on disk: %s", failure)
