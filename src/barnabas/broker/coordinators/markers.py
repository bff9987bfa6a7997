"""Transaction markers: control batches that end a transaction on the partitions it wrote to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.coordinators.groups import OFFSETS_TOPIC
from barnabas.broker.partitions.delayed_append import ALL_REPLICAS, Wait
from barnabas.log.validation import NEWEST_VERSION
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptRecordError, RequestError, StorageError
from barnabas.model.ids import TopicPartition
from barnabas.records.control import ControlType, build_control_batch

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.replication.partition import Partition

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
    waits: dict[TopicPartition, Wait[TopicPartition]] = {}
    for key in partitions:
        partition = broker.partitions.get(key)
        if partition is None:
            errors[key] = broker.absent(*key).code
            continue
        try:
            waits[key] = (partition, _append(broker, partition, ending), key)
        except (RequestError, CorruptRecordError) as refusal:
            errors[key] = refusal.code
        except StorageError as failure:
            broker.partitions.append_failed(partition, failure)
            errors[key] = ErrorCode.KAFKA_STORAGE_ERROR

    def settle(_: Partition, key: TopicPartition, code: ErrorCode) -> None:
        errors[key] = code
        if code is ErrorCode.NONE and key.topic == OFFSETS_TOPIC:
            broker.groups.transaction_ended(key.partition, ending.producer_id, ending.committed)

    broker.partitions.when_safe(
        list(waits.values()),
        broker.timer.now_ms() + TIMEOUT_MS,
        lambda: done(errors),
        settle=settle,
    )


def _append(broker: Broker, partition: Partition, ending: Ending) -> int:
    batch = build_control_batch(
        ControlType.COMMIT if ending.committed else ControlType.ABORT,
        producer_id=ending.producer_id,
        producer_epoch=ending.producer_epoch,
        coordinator_epoch=ending.coordinator_epoch,
        now_ms=broker.now_ms(),
    )
    appended = broker.partitions.append(
        partition,
        bytearray(batch),
        ALL_REPLICAS,
        NEWEST_VERSION,
        broker.now_ms(),
        origin="coordinator",
    )
    return appended.last_offset + 1
