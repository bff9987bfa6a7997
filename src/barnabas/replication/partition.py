"""One partition as its leader keeps it: who may write, and how far readers may see.

The high watermark is the offset below which a record will not be lost: every in-sync replica has
it. With this broker as the only replica that is the log's end, except while the flush policy
demands a flush: then it stays at the last flushed offset, so that nobody reads or is promised
what a crash could take back.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.log.partition_log import Appended, PartitionLog
from barnabas.log.validation import Origin
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition, Uuid

READ_UNCOMMITTED = 0
READ_COMMITTED = 1
NO_EPOCH = -1


class Partition:
    """A partition hosted by this broker."""

    __slots__ = (
        "_broker_id",
        "_flush_owed",
        "isr",
        "leader",
        "leader_epoch",
        "log",
        "replicas",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self, topic_partition: TopicPartition, topic_id: Uuid, log: PartitionLog, broker_id: int
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.leader = -1
        self.leader_epoch = NO_EPOCH
        self.isr: Sequence[int] = ()
        self.replicas: Sequence[int] = ()
        self._broker_id = broker_id
        self._flush_owed = False

    @property
    def is_leader(self) -> bool:
        """True while this broker leads the partition."""
        return self.leader == self._broker_id

    def lead(self, leader: int, epoch: int, isr: Sequence[int], replicas: Sequence[int]) -> None:
        """Take over what the controller decided; a new epoch begins at the log's end."""
        self.leader = leader
        self.isr = isr
        self.replicas = replicas
        if epoch > self.leader_epoch:
            self.leader_epoch = epoch
            if self.is_leader:
                self.log.leader_epochs.assign(epoch, self.log.log_end_offset)
        self.advance_high_watermark()

    def check_leader(self, epoch: int = NO_EPOCH) -> None:
        """Raise unless this broker leads, in the epoch that the client knows (-1: any)."""
        if self.leader != self._broker_id:
            raise RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if epoch != NO_EPOCH and epoch != self.leader_epoch:
            raise RequestError(
                ErrorCode.FENCED_LEADER_EPOCH
                if epoch < self.leader_epoch
                else ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"leader epoch of {self.topic_partition} is {self.leader_epoch}, not {epoch}",
            )

    def append(
        self,
        records: bytes | bytearray | memoryview,
        acks: int,
        version: int,
        now_ms: int,
        origin: Origin = "client",
    ) -> Appended:
        """Append what was sent; readers see it once the high watermark has passed it."""
        if self.leader != self._broker_id:
            raise RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if acks == -1 and len(self.isr) < self.min_isr:
            raise RequestError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{len(self.isr)} in-sync replicas of {self.topic_partition} "
                f"(min.insync.replicas={self.log.options.min_insync_replicas})",
            )
        log = self.log
        appended = log.append_as_leader(
            records, self.leader_epoch, now_ms, request_version=version, origin=origin
        )
        if log.log_end_offset - log.recovery_point >= log.options.flush_messages:
            self._flush_owed = True
        if not self._flush_owed:
            log.set_high_watermark(log.log_end_offset)
        return appended

    @property
    def min_isr(self) -> int:
        """Return `min.insync.replicas`, which cannot exceed the number of replicas."""
        return min(self.log.options.min_insync_replicas, len(self.replicas))

    @property
    def flush_owed(self) -> bool:
        """True while the flush policy holds back the high watermark."""
        return self._flush_owed

    def flushed(self) -> None:
        """Note that everything below the log's recovery point would survive a crash."""
        unflushed = self.log.log_end_offset - self.log.recovery_point
        self._flush_owed = unflushed >= self.log.options.flush_messages
        self.advance_high_watermark()

    def resign(self) -> None:
        """Lead no longer: the partition is being deleted."""
        self.leader = -1

    def advance_high_watermark(self) -> None:
        """Let readers see what is safe."""
        if not self.is_leader:
            return
        end = self.log.log_end_offset
        safe = min(self.log.recovery_point, end) if self._flush_owed else end
        if safe > self.log.high_watermark:
            self.log.set_high_watermark(safe)

    def readable_end(self, isolation: int) -> int:
        """Return the offset at which a consumer's reads end."""
        if isolation == READ_COMMITTED:
            return self.log.last_stable_offset
        return self.log.high_watermark
