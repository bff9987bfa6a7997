"""Transaction markers: control batches that end a transaction on the partitions it wrote to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.coordinators.groups import OFFSETS_TOPIC
from barnabas.log.validation import NEWEST_VERSION
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptRecordError, RequestError, StorageError
from barnabas.model.ids import TopicPartition
from barnabas.records.control import ControlType, build_control_batch
from barnabas.timing.purgatory import DelayedOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.replication.partition import Partition

ALL_REPLICAS = -1
TIMEOUT_MS = 30_000


class Ending(NamedTuple):
    """How one producer's transaction ends."""

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int


Done = Callable[[dict[TopicPartition, ErrorCode]], None]
"""Told what became of each partition's marker, once all are safe or have failed."""


def write_markers(
    broker: Broker, ending: Ending, partitions: Iterable[TopicPartition], done: Done
) -> None:
    """Append a marker to each partition that is led here; call `done` when all are safe."""
    errors: dict[TopicPartition, ErrorCode] = {}
    waiting: dict[TopicPartition, tuple[Partition, int]] = {}
    for key in partitions:
        partition = broker.partitions.get(key)
        if partition is None:
            errors[key] = broker.absent(*key).code
            continue
        try:
            waiting[key] = (partition, _append(broker, partition, ending))
        except (RequestError, CorruptRecordError) as refusal:
            errors[key] = refusal.code
        except StorageError as failure:
            broker.partitions.append_failed(partition, failure)
            errors[key] = ErrorCode.KAFKA_STORAGE_ERROR
    operation = _Markers(broker, ending, waiting, errors, done)
    deadline_ms = broker.timer.now_ms() + TIMEOUT_MS
    if not broker.partitions.produce_purgatory.watch(operation, list(waiting), deadline_ms):
        broker.timer.set()


def _append(broker: Broker, partition: Partition, ending: Ending) -> int:
    batch = build_control_batch(
        ControlType.COMMIT if ending.committed else ControlType.ABORT,
        producer_id=ending.producer_id,
        producer_epoch=ending.producer_epoch,
        coordinator_epoch=ending.coordinator_epoch,
        now_ms=broker.now_ms(),
    )
    appended = partition.append(
        bytearray(batch), ALL_REPLICAS, NEWEST_VERSION, broker.now_ms(), origin="coordinator"
    )
    if partition.flush_owed:
        broker.partitions.flusher.request(partition)
    else:
        broker.partitions.appended(partition)
    return appended.last_offset + 1


class _Markers(DelayedOperation):
    """Markers that were appended and are not known to be safe yet."""

    __slots__ = ("_broker", "_done", "_ending", "_errors", "_waiting")

    def __init__(
        self,
        broker: Broker,
        ending: Ending,
        waiting: dict[TopicPartition, tuple[Partition, int]],
        errors: dict[TopicPartition, ErrorCode],
        done: Done,
    ) -> None:
        super().__init__()
        self._broker = broker
        self._ending = ending
        self._waiting = waiting
        self._errors = errors
        self._done = done

    def try_complete(self) -> bool:
        """Take note of the partitions whose marker is safe by now."""
        for key, (partition, required) in list(self._waiting.items()):
            if not partition.is_leader:
                self._errors[key] = ErrorCode.NOT_LEADER_OR_FOLLOWER
            elif partition.log.high_watermark >= required:
                self._errors[key] = ErrorCode.NONE
                if key.topic == OFFSETS_TOPIC:
                    self._broker.groups.transaction_ended(
                        key.partition, self._ending.producer_id, self._ending.committed
                    )
            else:
                continue
            del self._waiting[key]
        return not self._waiting

    def on_expire(self) -> None:
        """Give up on the others; the coordinator tries again."""
        for key in self._waiting:
            self._errors[key] = ErrorCode.REQUEST_TIMED_OUT

    def on_complete(self) -> None:
        """Tell what became of them."""
        self._done(self._errors)
