"""One entry of `log.dirs`: its owner, how it was closed, and the partition logs in it.

    .lock  meta.properties  .kafka_cleanshutdown
    recovery-point-offset-checkpoint  replication-offset-checkpoint
    log-start-offset-checkpoint  cleaner-offset-checkpoint
    <topic>-<partition>/   <topic>-<partition>.<32 hex>-delete/   ….<32 hex>-future/

The lock is held while the object lives. The marker of a clean stop is removed before anything is
loaded, so that a crash at any later time counts as one. A deleted log only changes its name at
first; `purge` removes it later.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from barnabas.config.properties import read_properties, write_properties
from barnabas.config.topic import TopicOptions
from barnabas.log import partition_metadata
from barnabas.log.checkpoints import read_offsets, write_offsets
from barnabas.log.file_pool import FilePool
from barnabas.log.files import Files
from barnabas.log.flush import Flush
from barnabas.log.leader_epochs import EPOCH_FILE, LeaderEpochs
from barnabas.log.partition_log import PartitionLog
from barnabas.model.errors import ConfigError, CorruptFileError, DamagedLogError, StorageError
from barnabas.model.ids import NO_EPOCH, TopicPartition, Uuid

LOCK = ".lock"
META = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANED = "cleaner-offset-checkpoint"

DELETE, FUTURE = "-delete", "-future"
REMOVED = (DELETE, FUTURE)
"""What a start removes: deleted logs, and copies that were not complete when the broker ended."""

NAME_BYTES_MAX = 255
_MOVED = re.compile(r"^(.+)\.[0-9a-f]{32}-(delete|future|stray)$")
_NAME = re.compile(r"^(.+)-(\d+)$")

_logger = logging.getLogger("barnabas.logs")

_Load: TypeAlias = Callable[[TopicPartition], "PartitionLog | Damaged"]
Each: TypeAlias = Callable[[_Load, Iterable[TopicPartition]], "Iterable[PartitionLog | Damaged]"]
EachFlush: TypeAlias = Callable[[Callable[[Flush], None], Iterable[Flush]], Iterable[None]]

# How many logs have their files open at the same time while a directory is closed.
_CLOSED_AT_ONCE = 100


class Damaged(NamedTuple):
    """A log that was not opened, because its files hold what is neither understood nor torn.

    Neither its files nor its entries in the checkpoints are changed.
    """

    reason: str
    topic_id: Uuid | None
    leader_epoch: int


def parse_name(name: str) -> TopicPartition | None:
    """Return the partition of a directory's name, if it is a log in use."""
    match = _NAME.match(name)
    if match is None or _MOVED.match(name):
        return None
    return TopicPartition(match[1], int(match[2]))


def _make_durable_dirs(files: Files, path: str) -> None:
    """Create a directory with its missing parents, durably."""
    missing = []
    while not files.is_dir(path):
        missing.append(path)
        path = path.rpartition("/")[0] or "/"
    for directory in reversed(missing):
        files.make_dirs(directory)
        files.flush_dir(directory.rpartition("/")[0] or "/")


class LogDirectory:
    """The partition logs of one disk."""

    def __init__(self, pool: FilePool, path: str) -> None:
        """Lock the directory, creating it if necessary; StorageError if another broker has it."""
        files = pool.files
        self.path = path.rstrip("/") or "/"
        self.pool = pool
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.damaged: dict[TopicPartition, Damaged] = {}
        self._files = files
        _make_durable_dirs(files, self.path)
        self._lock = files.lock(self._at(LOCK))
        self.clean = files.exists(self._at(CLEAN_SHUTDOWN))
        self.left_to_load = 0
        """How many logs `load` has yet to open; other threads may read it."""
        self._recovery_points = self._read_checkpoint(RECOVERY_POINTS)
        self._log_starts = self._read_checkpoint(LOG_STARTS)
        self._cleaned = self._read_checkpoint(CLEANED)
        self.high_watermarks = self._read_checkpoint(HIGH_WATERMARKS)

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}"

    def _read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        try:
            return read_offsets(self._files, self._at(name))
        except CorruptFileError as failure:
            _logger.warning("checkpoint ignored: %s", failure)
            return {}

    # -- identity -----------------------------------------------------------------------------

    def read_meta(self) -> dict[str, str] | None:
        """Return what meta.properties says (broker.id, cluster.id), None for a new disk.

        A disk that a KRaft broker has formatted (version 1) says node.id instead.
        """
        data = self._files.read(self._at(META))
        if not data:
            return None
        try:
            meta = read_properties(data.decode())
            names = {"broker.id": meta.get("node.id", meta.get("broker.id"))}
            names["cluster.id"] = meta.get("cluster.id")
            return {name: value for name, value in names.items() if value is not None}
        except (UnicodeDecodeError, ConfigError) as failure:
            raise CorruptFileError(f"{self._at(META)}: unreadable: {failure}") from failure

    def write_meta(self, broker_id: int, cluster_id: str) -> None:
        """Mark the disk as this broker's."""
        text = write_properties(
            {"version": "0", "broker.id": str(broker_id), "cluster.id": cluster_id}
        )
        self._files.write_atomic(self._at(META), text.encode())

    # -- logs ---------------------------------------------------------------------------------

    def load(
        self,
        options_of: Callable[[str], TopicOptions],
        now_ms: int,
        *,
        random: Callable[[], float] = lambda: 0.0,
        each: Each = map,
    ) -> dict[TopicPartition, PartitionLog]:
        """Open every log, recovering them after a crash; `each` may be an executor's map.

        A log whose files are damaged is not changed, and is listed in `damaged`. The marker is
        removed only now: a start that fails earlier has changed nothing.
        """
        if self.clean:
            self._files.unlink(self._at(CLEAN_SHUTDOWN))
            self._files.flush_dir(self.path)

        def load(partition: TopicPartition) -> PartitionLog | Damaged:
            options = options_of(partition.topic)
            try:
                return self._open(partition, options, now_ms, topic_id=None, random=random)
            except DamagedLogError as failure:
                return self._keep_damaged(partition, failure)

        found = list(self._partitions())
        self.left_to_load = len(found)
        for partition, log in zip(found, each(load, found), strict=True):
            self.left_to_load -= 1
            if isinstance(log, Damaged):
                self.damaged[partition] = log
            else:
                self.logs[partition] = log
        return self.logs

    def _keep_damaged(self, partition: TopicPartition, failure: DamagedLogError) -> Damaged:
        _logger.error(
            "log %s: offline, its files were not changed: %s; `barnabas log verify` shows "
            "the damage, `barnabas log repair` moves the damaged part aside",
            partition,
            failure,
        )
        path = self.path_of(partition)
        topic_id, epoch = None, NO_EPOCH
        try:
            topic_id = partition_metadata.read(self._files, path)
            known = self._files.read(f"{path}/{EPOCH_FILE}") or b""
            epoch = LeaderEpochs.decode(known, path).latest
        except CorruptFileError:
            pass  # it is known as far as it can be read
        return Damaged(str(failure), topic_id, epoch)

    def _partitions(self) -> Iterator[TopicPartition]:
        for name in self._files.list(self.path):
            if not self._files.is_dir(self._at(name)) or name == "lost+found":
                continue
            partition = parse_name(name)
            if partition is not None:
                yield partition
            elif not name.endswith(REMOVED):
                _logger.warning(
                    "directory %s: ignored, its name is not <topic>-<partition>", self._at(name)
                )

    def leftovers(self) -> list[str]:
        """Return the paths of deleted logs and of unfinished copies that are still on the disk."""
        return [self._at(n) for n in self._files.list(self.path) if n.endswith(REMOVED)]

    def path_beside(self, partition: TopicPartition, unique: str, suffix: str) -> str:
        """Return the path of a log that is no longer, or not yet, in use; fits into a file name."""
        tail = f"-{partition.partition}.{unique}{suffix}"
        return self._at(partition.topic[: NAME_BYTES_MAX - len(tail)] + tail)

    def path_of(self, partition: TopicPartition) -> str:
        """Return where the log of a partition is while it is in use."""
        return self._at(str(partition))

    def open_log(
        self,
        partition: TopicPartition,
        options: TopicOptions,
        now_ms: int,
        *,
        topic_id: Uuid | None = None,
        random: Callable[[], float] = lambda: 0.0,
    ) -> PartitionLog:
        """Return the log of a partition, creating an empty one if there is none."""
        log = self.logs.get(partition)
        if log is None:
            if partition in self.damaged:
                raise DamagedLogError(self.damaged[partition].reason)
            log = self._open(partition, options, now_ms, topic_id=topic_id, random=random)
            self.logs[partition] = log
        elif log.topic_id is None and topic_id is not None:
            log.set_topic_id(topic_id)
        return log

    def _open(
        self,
        partition: TopicPartition,
        options: TopicOptions,
        now_ms: int,
        *,
        topic_id: Uuid | None,
        random: Callable[[], float],
    ) -> PartitionLog:
        log = PartitionLog.open(
            self.pool,
            self._at(str(partition)),
            partition,
            options,
            now_ms,
            clean=self.clean,
            recovery_point=self._recovery_points.get(partition, 0),
            log_start_offset=self._log_starts.get(partition, 0),
            cleaned_offset=self._cleaned.get(partition, 0),
            topic_id=topic_id,
            random=random,
        )
        log.set_high_watermark(self.high_watermarks.get(partition, 0))
        return log

    def delete_log(self, partition: TopicPartition, unique: str) -> str:
        """Take a log out of use and return its new path, for `purge` after file.delete.delay.ms.

        `unique` are 32 hex digits that keep apart several deletions of one name.
        """
        target = self.path_beside(partition, unique, DELETE)
        log = self.logs.pop(partition, None)
        for known in (self._recovery_points, self._log_starts, self._cleaned, self.high_watermarks):
            known.pop(partition, None)
        if log is not None:
            log.mark_deleted(target)
        else:
            del self.damaged[partition]
            self._files.rename(self.path_of(partition), target)
        return target

    def give_up(self, log: PartitionLog, unique: str) -> str:
        """Drop a log that was not put into use; return its path, for `purge`."""
        log.release()
        if log.directory != self.path_of(log.topic_partition):
            return log.directory
        target = self.path_beside(log.topic_partition, unique, DELETE)
        try:
            self._files.rename(log.directory, target)
        except StorageError as failure:
            # The next start finds a second log of the partition, and removes it.
            _logger.error(
                "log %s: could not be renamed, deleted at the next start: %s",
                log.directory,
                failure,
            )
        return target

    def purge(self, path: str) -> None:
        """Remove a deleted log's files; may run on another thread."""
        if not path.startswith(self.path + "/") or not path.endswith(REMOVED):
            raise StorageError(f"{path}: not a deleted log of {self.path}")
        self._files.remove_tree(path)

    # -- checkpoints --------------------------------------------------------------------------

    def checkpoints(self) -> dict[str, dict[TopicPartition, int]]:
        """Return the current content of each checkpoint file. Damaged logs keep their old entries:
        a repair needs them.
        """
        logs = self.logs.items()
        now: dict[str, dict[TopicPartition, int]] = {
            RECOVERY_POINTS: {key: log.recovery_point for key, log in logs},
            LOG_STARTS: {
                key: start
                for key, log in logs
                if (start := log.log_start_to_checkpoint) is not None
            },
            CLEANED: {key: log.cleaned_offset for key, log in logs if log.cleaned_offset},
            HIGH_WATERMARKS: {key: log.high_watermark for key, log in logs},
        }
        before = (self._recovery_points, self._log_starts, self._cleaned, self.high_watermarks)
        if self.damaged:
            for entries, known in zip(now.values(), before, strict=True):
                entries.update({key: known[key] for key in self.damaged if key in known})
        return now

    def write_recovery_points(self) -> None:
        """Checkpoint up to where each log is flushed."""
        points = {partition: log.recovery_point for partition, log in self.logs.items()}
        write_offsets(self._files, self._at(RECOVERY_POINTS), self.checkpoints()[RECOVERY_POINTS])
        for partition, point in points.items():
            self.logs[partition].checkpointed_recovery_point = point

    def write_log_starts(self) -> None:
        """Checkpoint the log start offsets that do not follow from the segments."""
        write_offsets(self._files, self._at(LOG_STARTS), self.checkpoints()[LOG_STARTS])

    def write_cleaned_offsets(self) -> None:
        """Checkpoint up to where each log is compacted."""
        write_offsets(self._files, self._at(CLEANED), self.checkpoints()[CLEANED])

    def write_high_watermarks(self) -> None:
        """Checkpoint the high watermarks."""
        write_offsets(self._files, self._at(HIGH_WATERMARKS), self.checkpoints()[HIGH_WATERMARKS])

    # -- ending -------------------------------------------------------------------------------

    def close(self, now_ms: int, broker_epoch: int = NO_EPOCH, *, each: EachFlush = map) -> None:
        """Stop cleanly: all logs flushed, checkpoints written, marker set, lock released.

        If a log is damaged there is no marker: it would claim that this one was closed, too.
        `each` may be an executor's map, which then flushes several logs at a time.
        """
        logs = list(self.logs.values())
        for start in range(0, len(logs), _CLOSED_AT_ONCE):
            self._close_logs(logs[start : start + _CLOSED_AT_ONCE], now_ms, each)
        self.write_recovery_points()
        self.write_log_starts()
        self.write_cleaned_offsets()
        self.write_high_watermarks()
        if not self.damaged:
            marker = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
            self._files.write_atomic(self._at(CLEAN_SHUTDOWN), marker.encode())
        self.logs.clear()
        self._lock.release()

    def _close_logs(self, logs: list[PartitionLog], now_ms: int, each: EachFlush) -> None:
        flushes = [(log, flush) for log in logs if (flush := log.begin_close()) is not None]
        for _, flush in flushes:
            # The checkpoints that follow flush this directory once for all.
            flush.directories = [path for path in flush.directories if path != self.path]
        try:
            for _ in each(Flush.run, [flush for _, flush in flushes]):
                pass
        finally:
            for log, flush in flushes:
                log.finish_flush(flush, now_ms)
        for log in logs:
            log.release()

    def abandon(self) -> None:
        """Close files and release the lock without writing anything, like a crash."""
        for log in self.logs.values():
            log.release()
        self.logs.clear()
        self._lock.release()
