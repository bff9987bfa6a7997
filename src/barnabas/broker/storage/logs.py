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
from typing import NamedTuple

from barnabas.broker.loop import offload
from barnabas.broker.storage.log_failures import directory_is_lost
from barnabas.config.topic import TopicOptions
from barnabas.log.checkpoints import encode_offsets
from barnabas.log.directory import Damaged, LogDirectory
from barnabas.log.file_pool import FilePool
from barnabas.log.files import Files
from barnabas.log.fork import PENDING, Fork
from barnabas.log.partition_log import PartitionLog
from barnabas.log.relocation import Relocation
from barnabas.model.errors import ConfigError, DamagedLogError, StorageError
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.model.note import Note, NoteSink, unnoted

logger = logging.getLogger("barnabas.logs")


FLUSHED_TOGETHER = 8
"""How many logs are flushed at a time when the broker stops: disks are faster in parallel."""


class Recovery(NamedTuple):
    """What a start had to do after an unclean stop."""

    logs: int
    seconds: float


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
        self.offline: dict[str, str] = {}
        """Directories that failed, and why."""
        self.unclosed: list[str] = []
        """Directories that a clean stop could not mark as closed."""
        self.recoveries: dict[str, Recovery] = {}
        """What the last start recovered, by directory that was not closed cleanly."""
        self.on_failure: Callable[[str, StorageError], None] | None = None
        """Called with a directory and its disk error, once the broker runs."""
        self.note: NoteSink = unnoted
        self._removals: set[asyncio.TimerHandle] = set()
        self._removing: set[asyncio.Future[None]] = set()
        self._written: dict[str, bytes] = {}
        self._checkpointing = asyncio.Lock()
        self._directories: list[LogDirectory] = []
        for path in paths:
            try:
                self._directories.append(LogDirectory(pool, path))
            except StorageError as failure:
                if not directory_is_lost(failure):
                    self.abandon()
                    raise
                self._leave_out(path.rstrip("/"), failure)
        self._check_some_left()

    @property
    def paths(self) -> list[str]:
        """Return the directories in use."""
        return [directory.path for directory in self._directories]

    @property
    def all(self) -> list[PartitionLog]:
        """Return every log."""
        return [log for directory in self._directories for log in directory.logs.values()]

    @property
    def left_to_recover(self) -> dict[str, int]:
        """Return how many logs of each directory a start has yet to recover."""
        return {
            directory.path: 0 if directory.clean else directory.left_to_load
            for directory in self._directories
        }

    def identity(self) -> dict[str, str]:
        """Return the meta.properties of the directories, which must agree; empty for new ones."""
        known: dict[str, str] = {}
        for directory in list(self._directories):
            try:
                meta = directory.read_meta() or {}
            except StorageError as failure:
                self._leave_out(directory.path, failure)
                continue
            for name, value in meta.items():
                if known.setdefault(name, value) != value:
                    raise ConfigError(
                        f"{directory.path}/meta.properties has {name}={value}, "
                        f"another directory of log.dirs has {name}={known[name]}"
                    )
        self._check_some_left()
        return known

    def write_identity(self, broker_id: int, cluster_id: str) -> None:
        """Mark every directory as this broker's."""
        for directory in list(self._directories):
            try:
                if directory.read_meta() is None:
                    directory.write_meta(broker_id, cluster_id)
            except StorageError as failure:
                self._leave_out(directory.path, failure)
        self._check_some_left()

    async def load(
        self, options_of: Callable[[str], TopicOptions], now_ms: int, threads: int
    ) -> None:
        """Open every log on disk, the disks side by side.

        Logs of an unclean stop are recovered, with this many threads for each disk.
        """
        loop = asyncio.get_running_loop()
        directories = list(self._directories)
        began = loop.time()
        loads = (
            offload(self._executor, self._load, directory, options_of, now_ms, threads)
            for directory in directories
        )
        outcomes = await asyncio.gather(*loads, return_exceptions=True)
        for directory, outcome in zip(directories, outcomes, strict=True):
            if isinstance(outcome, StorageError) and directory_is_lost(outcome):
                self._leave_out(directory.path, outcome)
            elif outcome is not None:
                raise outcome
        for directory in list(self._directories):
            try:
                await offload(self._executor, _flush_owed, directory, now_ms)
            except StorageError as failure:
                if not directory_is_lost(failure):
                    raise
                self._leave_out(directory.path, failure)
                continue
            if not directory.clean and directory.logs:
                recovery = Recovery(len(directory.logs), loop.time() - began)
                self.recoveries[directory.path] = recovery
                logger.info(
                    "log directory %s was not closed cleanly: recovered %d logs in %.3f s",
                    directory.path,
                    recovery.logs,
                    recovery.seconds,
                )
                self._note_recovery(directory, loop.time() - began)
            for path in directory.leftovers():
                self._purge_later(directory, path, 0)
        self._check_some_left()
        self._keep_one_of_each()

    def _note_recovery(self, directory: LogDirectory, seconds: float) -> None:
        data = {
            "directory": directory.path,
            "logs": len(directory.logs),
            "took_ms": int(seconds * 1000),
        }
        self.note(Note("log.recovered", f"directory:{directory.path}", "unclean-shutdown", data))

    def _keep_one_of_each(self) -> None:
        """Finish a move between directories that a crash interrupted after the copy was done."""
        holders: dict[TopicPartition, LogDirectory] = {}
        for directory in self._directories:
            for partition, log in list(directory.logs.items()):
                other = holders.setdefault(partition, directory)
                if other is directory:
                    continue
                # Both hold all that was ever flushed; the longer one may hold more.
                if log.log_end_offset > other.logs[partition].log_end_offset:
                    holders[partition] = directory
                    directory = other
                logger.warning("%s: removing a second log in %s", partition, directory.path)
                self._delete(directory, partition, 0)

    def _load(
        self,
        directory: LogDirectory,
        options_of: Callable[[str], TopicOptions],
        now_ms: int,
        threads: int,
    ) -> None:
        if threads == 1 or directory.clean:
            directory.load(options_of, now_ms, random=self._random)
        else:
            with ThreadPoolExecutor(threads, "barnabas-recovery") as pool:
                directory.load(options_of, now_ms, random=self._random, each=pool.map)

    def open(
        self,
        partition: TopicPartition,
        topic_id: Uuid,
        options: TopicOptions,
        now_ms: int,
        *,
        new: bool,
    ) -> PartitionLog:
        """Return a partition's log; a new one goes to the directory with the fewest.

        A log of an older topic of the same name is deleted, never written to. While a directory is
        offline, a partition that is not `new` gets no other log: its own may be there.
        """
        directory = self._directory_of(partition)
        if directory is not None:
            log = directory.logs[partition]
            if log.topic_id is None:  # a crash before the first flush can lose partition.metadata
                log.set_topic_id(topic_id)
            if log.topic_id == topic_id:
                log.configure(options)
                return log
            logger.warning("%s: removing the log of a deleted topic of this name", partition)
            self._delete(directory, partition, options.file_delete_delay_ms)
        elif partition in self.damaged:
            damaged = self.damaged[partition]
            if damaged.topic_id is None or damaged.topic_id == topic_id:
                raise DamagedLogError(damaged.reason)
            logger.warning("%s: removing the log of a deleted topic of this name", partition)
            self.delete(partition, options.file_delete_delay_ms)
        elif self.offline and not new:
            raise StorageError(
                f"the log of {partition} may be in an offline directory: {', '.join(self.offline)}"
            )
        for directory in sorted(self._directories, key=lambda each: len(each.logs)):
            try:
                return directory.open_log(
                    partition, options, now_ms, topic_id=topic_id, random=self._random
                )
            except StorageError as failure:
                refusal = failure
                if self.on_failure is not None:
                    self.on_failure(directory.path, failure)
        raise refusal

    def may_be_offline(self, partition: TopicPartition) -> bool:
        """Return whether a partition's log may be in a directory that failed."""
        return bool(self.offline) and self._directory_of(partition) is None

    @property
    def damaged(self) -> dict[TopicPartition, Damaged]:
        """Return the logs that are offline because of their contents, unless there is another."""
        return {
            partition: damaged
            for directory in self._directories
            for partition, damaged in directory.damaged.items()
            if self._directory_of(partition) is None
        }

    def delete(self, partition: TopicPartition, delay_ms: int) -> None:
        """Take a log out of use now, and remove its files after a while."""
        for directory in self._directories:
            if partition in directory.logs or partition in directory.damaged:
                self._delete(directory, partition, delay_ms)

    def relocation(self, partition: TopicPartition, path: str, now_ms: int) -> Relocation | None:
        """Start to move a log to another directory; None if it is already there."""
        source = self._directory_of(partition)
        target = next(each for each in self._directories if each.path == path)
        if source is None or source is target:
            return None
        unique = self._random_bytes(16).hex()
        return Relocation(source, target, source.logs[partition], unique, now_ms)

    def fork(
        self, partition: TopicPartition, source: PartitionLog, topic_id: Uuid, end_offset: int
    ) -> Fork:
        """Describe a fork of a log, in the directory of its source."""
        directory = self._directory_of(source.topic_partition)
        assert directory is not None
        unique = self._random_bytes(16).hex()
        return Fork(directory, source, partition, topic_id, end_offset, unique)

    def confirm_fork(self, partition: TopicPartition) -> None:
        """Confirm a fork whose topic exists, so that the next start does not remove it."""
        directory = self._directory_of(partition)
        if directory is not None:
            self._files.unlink(f"{directory.path_of(partition)}/{PENDING}")

    def settle_forks(self, exists: Callable[[Uuid], bool]) -> None:
        """Keep the forks whose topic was created before a crash, and remove the others."""
        for log in self.all:
            if self._files.exists(f"{log.directory}/{PENDING}"):
                if log.topic_id is not None and exists(log.topic_id):
                    self.confirm_fork(log.topic_partition)
                else:
                    logger.warning("%s: removing an unfinished fork", log.directory)
                    self.delete(log.topic_partition, 0)

    def remove_later(self, path: str, delay_ms: int) -> None:
        """Remove a log that is out of use, after a while."""
        for directory in self._directories:
            if path.startswith(directory.path + "/"):
                self._purge_later(directory, path, delay_ms)

    def path_of(self, partition: TopicPartition) -> str | None:
        """Return the directory that holds a partition's log."""
        directory = self._directory_of(partition)
        return directory.path if directory is not None else None

    def space(self, path: str) -> tuple[int, int]:
        """Return how many bytes the disk of a directory has, and how many are free."""
        return self._files.space(path)

    async def write_checkpoints(self) -> None:
        """Checkpoint changed recovery points, log starts, high watermarks and cleaner offsets."""
        async with self._checkpointing:
            for directory in list(self._directories):
                try:
                    await self._write_checkpoints(directory)
                except StorageError as failure:
                    logger.error("checkpoints of %s not written: %s", directory.path, failure)
                    if self.on_failure is not None:
                        self.on_failure(directory.path, failure)

    async def _write_checkpoints(self, directory: LogDirectory) -> None:
        points = [(log, log.recovery_point) for log in directory.logs.values()]
        for name, data in _checkpoints(directory).items():
            path = f"{directory.path}/{name}"
            if self._written.get(path) != data:
                await offload(self._executor, self._files.write_atomic, path, data)
                self._written[path] = data
        for log, point in points:
            log.checkpointed_recovery_point = min(point, log.recovery_point)

    def flush_directory(self, path: str) -> None:
        """Make the file names in a log's directory durable; may run on another thread."""
        self._files.flush_dir(path)

    def unlink_later(self, paths: Sequence[str], delay_ms: int) -> None:
        """Remove files that are out of use after a while; the next start removes them, too."""
        self._later(delay_ms, _unlink, self._files, paths)

    async def close(self, now_ms: int, broker_epoch: int) -> None:
        """Stop cleanly: flush everything and mark it as closed."""
        self._leave_removals()
        loop = asyncio.get_running_loop()
        for directory in self._directories:
            close = partial(self._close, directory, now_ms, broker_epoch)
            try:
                await loop.run_in_executor(self._executor, close)
            except StorageError as failure:
                # Without its marker the next start recovers it; the others are closed cleanly.
                logger.error(
                    "log directory %s not closed cleanly, the next start recovers it: %s",
                    directory.path,
                    failure,
                )
                self.unclosed.append(directory.path)
                directory.abandon()
        if self._removing:
            await asyncio.wait(self._removing)

    def _close(self, directory: LogDirectory, now_ms: int, broker_epoch: int) -> None:
        if len(directory.logs) < FLUSHED_TOGETHER or self._executor is None:
            directory.close(now_ms, broker_epoch)
            return
        with ThreadPoolExecutor(FLUSHED_TOGETHER, "barnabas-close") as pool:
            directory.close(now_ms, broker_epoch, each=pool.map)

    def discard_unflushed(self, now_ms: int) -> None:
        """Truncate every log to its last flush, as a crash of the machine may."""
        for log in self.all:
            log.truncate_to(log.recovery_point, now_ms)

    def take_offline(self, path: str, failure: StorageError) -> list[TopicPartition]:
        """Stop using a directory, and write nothing more to it; return its partitions."""
        directory = next(each for each in self._directories if each.path == path)
        held = list(directory.logs)
        self._directories.remove(directory)
        self.offline[path] = str(failure)
        directory.abandon()
        return held

    def _leave_out(self, path: str, failure: StorageError) -> None:
        """Continue the start without an unusable directory."""
        logger.error("log directory %s is offline, starting without it: %s", path, failure)
        if path in self.paths:
            self.take_offline(path, failure)
        else:
            self.offline[path] = str(failure)

    def _check_some_left(self) -> None:
        if not self._directories:
            raise StorageError(
                f"no usable directory in log.dirs: {'; '.join(self.offline.values())}"
            )

    def abandon(self) -> None:
        """Close without writing anything, as a crash would."""
        self._leave_removals()
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
        self._later(delay_ms, _purge, directory, path)

    def _later(self, delay_ms: int, remove: Callable[..., None], *arguments: object) -> None:
        """Remove something on the executor after a while, unless the broker stops before."""
        loop = asyncio.get_running_loop()

        def begin() -> None:
            self._removals.discard(handle)
            removing = loop.run_in_executor(self._executor, remove, *arguments)
            self._removing.add(removing)
            removing.add_done_callback(self._removing.discard)

        handle = loop.call_later(delay_ms / 1000, begin)
        self._removals.add(handle)

    def _leave_removals(self) -> None:
        """Leave pending removals to the next start."""
        for handle in self._removals:
            handle.cancel()
        self._removals.clear()


def _checkpoints(directory: LogDirectory) -> dict[str, bytes]:
    return {name: encode_offsets(offsets) for name, offsets in directory.checkpoints().items()}


def _flush_owed(directory: LogDirectory, now_ms: int) -> None:
    """Flush if the topic's policy demands it: a leader counts nothing before."""
    for log in directory.logs.values():
        if log.log_end_offset - log.recovery_point >= log.options.flush_messages:
            log.flush(now_ms)


def _purge(directory: LogDirectory, path: str) -> None:
    try:
        directory.purge(path)
    except StorageError as failure:
        logger.error("deleted log %s not removed, the next start retries: %s", path, failure)


def _unlink(files: Files, paths: Sequence[str]) -> None:
    try:
        for path in paths:
            files.unlink(path)
    except StorageError as failure:
        logger.error("deleted segments not removed, the next start retries: %s", failure)
