"""Transaction markers: control batches that end a transaction on the partitions it wrote to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.coordinators.collaborators import Collaborators
from barnabas.broker.coordinators.groups import OFFSETS_TOPIC
from barnabas.broker.partitions.delayed_append import ALL_REPLICAS, Wait
from barnabas.log.validation import NEWEST_VERSION
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptRecordError, RequestError, StorageError
from barnabas.model.ids import TopicPartition
from barnabas.records.control import ControlType, build_control_batch

if TYPE_CHECKING:
    from barnabas.replication.partition import Partition

TIMEOUT_MS = 30_000


class Ending(NamedTuple):
    """How one producer's transaction ends."""

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int


Done = Callable[[dict[TopicPartition, ErrorCode]], None]
"""Gets the error code of each partition's marker, once all are committed or have failed."""


class MarkerWriter:
    """Appends markers to partitions that are led here."""

    def __init__(
        self, collaborators: Collaborators, transaction_ended: Callable[[int, int, bool], None]
    ) -> None:
        """Call `transaction_ended` for each committed marker in `__consumer_offsets`, with the
        partition number, the producer id, and whether the transaction was committed.
        """
        self._partitions = collaborators.partitions
        self._absent = collaborators.absent
        self._timer = collaborators.timer
        self._now_ms = collaborators.now_ms
        self._transaction_ended = transaction_ended

    def write(self, ending: Ending, keys: Iterable[TopicPartition], done: Done) -> None:
        """Append a marker to each partition; call `done` when all are committed or have failed."""
        errors: dict[TopicPartition, ErrorCode] = {}
        waits: dict[TopicPartition, Wait[TopicPartition]] = {}
        for key in keys:
            partition = self._partitions.get(key)
            if partition is None:
                errors[key] = self._absent(*key).code
                continue
            try:
                waits[key] = (partition, self._append(partition, ending), key)
            except (RequestError, CorruptRecordError) as refusal:
                errors[key] = refusal.code
            except StorageError as failure:
                self._partitions.append_failed(partition, failure)
                errors[key] = ErrorCode.KAFKA_STORAGE_ERROR

        def settle(_: Partition, key: TopicPartition, code: ErrorCode) -> None:
            errors[key] = code
            if code is ErrorCode.NONE and key.topic == OFFSETS_TOPIC:
                self._transaction_ended(key.partition, ending.producer_id, ending.committed)

        self._partitions.when_safe(
            list(waits.values()),
            self._timer.now_ms() + TIMEOUT_MS,
            lambda: done(errors),
            settle=settle,
        )

    def _append(self, partition: Partition, ending: Ending) -> int:
        """Append a marker; return the offset that must be committed."""
        now_ms = self._now_ms()
        batch = build_control_batch(
            ControlType.COMMIT if ending.committed else ControlType.ABORT,
            producer_id=ending.producer_id,
            producer_epoch=ending.producer_epoch,
            coordinator_epoch=ending.coordinator_epoch,
            now_ms=now_ms,
        )
        appended = self._partitions.append(
            partition, bytearray(batch), ALL_REPLICAS, NEWEST_VERSION, now_ms, origin="coordinator"
        )
        return appended.last_offset + 1
