"""A second log that begins with the records of another one, created in constant time by hard links.

The closed segments of the source, with their indexes and producer snapshots, get a second name in
the directory of the new log; only the segment that an end offset cuts is copied, up to the last
batch that lies below it. Leader epochs are cut at the same place, the topic id is the new topic's.
From then on the two logs are independent (see `sharing`).

The new log is created under a `-future` name, which a start removes, and renamed when it is
complete. Until the topic exists it contains the file `fork.pending`: by this a start finds and
removes what a crash left without its topic.
"""

from __future__ import annotations

from barnabas.config.topic import TopicOptions
from barnabas.log import partition_metadata
from barnabas.log.directory import FUTURE, LogDirectory
from barnabas.log.file_pool import FilePool, PooledFile
from barnabas.log.leader_epochs import EPOCH_FILE, LeaderEpochs
from barnabas.log.partition_log import PartitionLog
from barnabas.log.producer_snapshot import snapshot_offsets, snapshot_path
from barnabas.log.segment import LOG, SUFFIXES, Segment, segment_name
from barnabas.log.sharing import copy_start
from barnabas.model.ids import TopicPartition, Uuid

PENDING = "fork.pending"


class Fork:
    """One log being forked; `link`, `copy` (on any thread), `release`, `settle`, in this order."""

    def __init__(
        self,
        directory: LogDirectory,
        source: PartitionLog,
        partition: TopicPartition,
        topic_id: Uuid,
        end_offset: int,
        unique: str,
    ) -> None:
        """Describe the fork: `directory` holds the source, `end_offset` is the first left out."""
        self._directory = directory
        self._files = directory.pool.files
        self._source = source
        self._partition = partition
        self._topic_id = topic_id
        self._end = end_offset
        self._unique = unique
        self._path = directory.path_beside(partition, unique, FUTURE)
        self._cut: tuple[int, PooledFile, int] | None = None  # base offset, file, size that is left
        self._log: PartitionLog | None = None
        self._recovery_point = self._log_start = self._cleaned = 0

    def link(self, now_ms: int) -> None:
        """Link what is whole; between two appends to the source."""
        files, source = self._files, self._source
        source.roll(now_ms)
        self._recovery_point = source.recovery_point
        self._log_start = source.log_start_offset
        self._cleaned = min(source.cleaned_offset, self._end)
        files.make_dirs(self._path)
        segments = source.segments
        for index, segment in enumerate(segments):
            if segment.base_offset >= self._end:
                break
            if not segment.size_bytes:
                continue  # the active one; or Apache Kafka has compacted all of it away
            last = index + 1 == len(segments)
            following = source.log_end_offset if last else segments[index + 1].base_offset
            if following <= self._end:
                self._link(segment)
                continue
            located = segment.locate(self._end)
            if located is None:
                self._link(segment)
            elif located[0]:
                segment.file.pin()
                self._cut = (segment.base_offset, segment.file, located[0])
        for offset in snapshot_offsets(files, source.directory):
            if offset <= self._end:
                self._link_file(source.directory, snapshot_path("", offset)[1:])
        epochs = LeaderEpochs.decode(source.leader_epochs.encode(), source.directory)
        epochs.truncate_end(self._end)
        files.write(f"{self._path}/{EPOCH_FILE}", epochs.encode())
        metadata = partition_metadata.encode(self._topic_id)
        files.write(f"{self._path}/{partition_metadata.NAME}", metadata)
        files.write(f"{self._path}/{PENDING}", str(source.topic_partition).encode())

    def _link(self, segment: Segment) -> None:
        for suffix in SUFFIXES:
            path = segment.path(suffix)
            if self._files.exists(path):
                name = segment_name(segment.base_offset) + suffix
                self._files.link(path, f"{self._path}/{name}")

    def _link_file(self, directory: str, name: str) -> None:
        self._files.link(f"{directory}/{name}", f"{self._path}/{name}")

    def copy(self, options: TopicOptions, now_ms: int) -> None:
        """Copy the segment that the end offset cuts, flush everything, and open the log."""
        files = self._files
        if self._cut is not None:
            base_offset, pooled, size = self._cut
            copy_start(files, pooled.get(), f"{self._path}/{segment_name(base_offset)}{LOG}", size)
        for name in (EPOCH_FILE, partition_metadata.NAME, PENDING):
            files.flush_file(f"{self._path}/{name}")
        files.flush_dir(self._path)
        # Through a pool of its own, because the directory's is for one thread.
        self._log = PartitionLog.open(
            FilePool(files, limit=4),
            self._path,
            self._partition,
            options,
            now_ms,
            log_start_offset=min(self._log_start, self._end),
            cleaned_offset=self._cleaned,
            topic_id=self._topic_id,
        )

    def release(self) -> None:
        """Release the source; after `copy`, whether or not it succeeded."""
        if self._cut is not None:
            self._cut[1].unpin()
            self._cut = None

    def settle(self) -> PartitionLog:
        """Give the log its name.

        Its recovery point must be checkpointed before the topic exists: a compacted log has gaps
        below it, which recovery would take for loss.
        """
        log = self._log
        assert log is not None, "not copied yet"
        log.move_to(self._directory.path_of(self._partition), self._directory.pool)
        self._files.flush_dir(self._directory.path)
        # What the source had not flushed is not flushed here either.
        log.recovery_point = min(self._recovery_point, log.log_end_offset)
        self._directory.logs[self._partition] = log
        return log

    def abandon(self) -> str:
        """Abandon the fork, after `release`; return the path of the copy, for removal."""
        return self._path if self._log is None else self._directory.give_up(self._log, self._unique)
