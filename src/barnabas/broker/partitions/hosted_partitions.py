"""The partitions that this broker hosts, and everything that waits for them.

Consumers and followers wait for records, producers for their records to be committed, and
DeleteRecords for the low watermark. Code that changes a partition calls the method here that names
the change, and requests that are complete are answered within that call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor

from barnabas.broker.loop import WheelTimer
from barnabas.broker.partitions.delayed_append import (
    ALL_REPLICAS,
    DelayedAppend,
    Settle,
    Token,
    Wait,
)
from barnabas.broker.partitions.expirations import Expirations
from barnabas.broker.partitions.fetch_sessions import FetchSessions
from barnabas.broker.partitions.flusher import Flusher
from barnabas.broker.partitions.traffic import Traffic
from barnabas.log.partition_log import Appended
from barnabas.log.validation import Origin
from barnabas.metrics.instruments import Histogram
from barnabas.model.errors import StorageError
from barnabas.model.ids import TopicPartition
from barnabas.replication.partition import Partition
from barnabas.timing.purgatory import Purgatory

logger = logging.getLogger("barnabas.logs")


class HostedPartitions(dict[tuple[str, int], Partition]):
    """Partitions by topic and number.

    It is a dict, and not an object with a dict inside: every request looks up partitions, and a
    Python method in between would cost each of them.
    """

    def __init__(
        self,
        timer: WheelTimer,
        executor: Executor | None,
        now_ms: Callable[[], int],
        fetch_sessions: FetchSessions,
        *,
        check_silence: Callable[[], object],
        on_follower_flushed: Callable[[Partition], None],
        on_storage_failure: Callable[[TopicPartition, StorageError], None],
        flush_times: Histogram | None = None,
    ) -> None:
        """Host nothing yet.

        Flushes run on the executor. `check_silence` is called after each: it may have taken so long
        that this broker is no longer the leader.
        """
        super().__init__()
        self._timer = timer
        self._check_silence = check_silence
        self._on_follower_flushed = on_follower_flushed
        self.on_storage_failure = on_storage_failure
        self.fetch_purgatory = Purgatory("fetch", timer.wheel)
        self.produce_purgatory = Purgatory("produce", timer.wheel)
        self.deletion_purgatory = Purgatory("delete-records", timer.wheel)
        self.fetch_sessions = fetch_sessions
        self.flusher = Flusher(executor, now_ms, self.flushed, self.flush_failed, flush_times)
        self.traffic = Traffic()
        self.expirations = Expirations()

    # -- writing ------------------------------------------------------------------------------

    def append(
        self,
        partition: Partition,
        records: bytes | bytearray | memoryview,
        acks: int,
        version: int,
        now_ms: int,
        origin: Origin = "client",
    ) -> Appended:
        """Append to a partition that is led here; readers see it now, or after a flush it owes.

        `version` is the version of Produce that the records came with. Raises what
        `Partition.append` raises.
        """
        traffic = partition.traffic
        if traffic is None:
            traffic = self.traffic.of(partition)
        traffic.produce_requests += 1
        log = partition.log
        end = log.log_end_offset
        appended = partition.append(records, acks, version, now_ms, origin)
        count = log.log_end_offset - end
        if count:  # else the producer has sent it before
            traffic.messages_in += count
            traffic.bytes_in += len(records)
            if log.converted:
                traffic.produce_conversions += log.converted
                log.converted = 0
        if partition.flush_owed:  # as in `flush_if_owed`
            self.flusher.request(partition)
        else:
            self.appended(partition)
        return appended

    def when_safe(
        self,
        waits: list[Wait[Token]],
        deadline_ms: int,
        done: Callable[[], None],
        *,
        settle: Settle[Token] | None = None,
        acks: int = ALL_REPLICAS,
        is_stale: Callable[[], bool] | None = None,
    ) -> DelayedAppend[Token]:
        """Call `done` once appends are committed or have failed, or at the deadline of the timer.

        That may be before this returns. `settle` is called for each append as soon as it ends.
        """
        operation = DelayedAppend(waits, done, settle, acks, is_stale, self.expirations)
        keys = [partition.topic_partition for partition, _, _ in waits]
        if not self.produce_purgatory.watch(operation, keys, deadline_ms):
            self._timer.set()
        return operation

    # -- what happened to a partition ---------------------------------------------------------

    def appended(self, partition: Partition) -> None:
        """Handle records that this leader appended or flushed: they may be visible now."""
        key = partition.topic_partition
        self.wake_readers(key)
        self.produce_purgatory.check(key)
        if partition.log.has_finished_segment_to_flush:
            self.flusher.request_finished(partition)

    def followed(self, partition: Partition) -> None:
        """Handle records from a partition's leader: consumers may read from followers."""
        self.wake_readers(partition.topic_partition)
        if partition.log.has_finished_segment_to_flush:
            self.flusher.request_finished(partition)

    def watermark_rose(self, partition: Partition) -> None:
        """Handle a higher high watermark: more records are committed and visible."""
        key = partition.topic_partition
        self.produce_purgatory.check(key)
        self.wake_readers(key)

    def role_changed(self, key: TopicPartition) -> None:
        """Handle that a partition is now led, followed or no longer hosted here."""
        self.wake_readers(key)
        self.produce_purgatory.check(key)
        self.deletion_purgatory.check(key)
        partition = self.get(key)
        if partition is not None and partition.log.has_finished_segment_to_flush:
            # Recovered after an unclean start: until these are flushed, an idle log could be
            # neither compacted nor shortened by retention.
            self.flusher.request_finished(partition)

    def flushed(self, partition: Partition) -> None:
        """Handle that a partition's log was flushed."""
        self._check_silence()
        if self.get(partition.topic_partition) is not partition:
            return  # it was deleted meanwhile
        partition.flushed()
        self.flush_if_owed(partition)
        if not partition.is_leader:
            self._on_follower_flushed(partition)
        self.appended(partition)

    # -- what follows -------------------------------------------------------------------------

    def wake_readers(self, key: TopicPartition) -> None:
        """Wake consumers and followers that wait for a partition that has changed."""
        for session in self.fetch_sessions.touched(key):
            self.fetch_purgatory.check(session)
        self.fetch_purgatory.check(key)

    def flush_if_owed(self, partition: Partition) -> bool:
        """Have a partition flushed if its high watermark waits for that; return whether it does."""
        owed = partition.flush_owed
        if owed:
            self.flusher.request(partition)
        return owed

    # -- disk errors --------------------------------------------------------------------------

    def append_failed(self, partition: Partition, failure: StorageError) -> None:
        """Handle a failed write."""
        logger.error("%s: append failed: %s", partition.topic_partition, failure)
        self.on_storage_failure(partition.topic_partition, failure)

    def read_failed(self, key: TopicPartition, failure: StorageError) -> None:
        """Handle a failed read."""
        logger.error("%s: read failed: %s", key, failure)
        self.on_storage_failure(key, failure)

    def flush_failed(self, partition: Partition, failure: StorageError) -> None:
        """Handle a failed flush."""
        if self.get(partition.topic_partition) is not partition:
            return  # it was deleted meanwhile, and its directory renamed
        logger.error("%s: flush failed: %s", partition.topic_partition, failure)
        self.on_storage_failure(partition.topic_partition, failure)
