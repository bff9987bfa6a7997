"""The small values that clients pass around, under the names that users of Kafka know."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition

__all__ = [
    "BrokerMetadata",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "PartitionMetadata",
    "RecordMetadata",
    "TopicPartition",
    "TopicPartitionReplica",
]


class TopicPartitionReplica(NamedTuple):
    """One copy of a partition: the one on this broker."""

    topic: str
    partition: int
    broker_id: int


class OffsetAndMetadata(NamedTuple):
    """What a group commits for a partition: the next offset to read, and a text of its own."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class OffsetAndTimestamp(NamedTuple):
    """An offset, found by its timestamp."""

    offset: int
    timestamp: int | None
    leader_epoch: int = -1


class BrokerMetadata(NamedTuple):
    """Where a broker listens. `nodeId` is spelled as kafka-python and aiokafka spell it."""

    nodeId: int
    host: str
    port: int
    rack: str | None = None


class PartitionMetadata(NamedTuple):
    """Who leads and holds a partition, or the error that stands for it."""

    topic: str
    partition: int
    leader: int
    replicas: list[int]
    isr: list[int]
    error: BarnabasError | None = None


class RecordMetadata(NamedTuple):
    """Where a record was written. `timestamp_type` is 0 for its own time, 1 for the broker's."""

    topic: str
    partition: int
    topic_partition: TopicPartition
    offset: int
    timestamp: int | None = None
    timestamp_type: int | None = None
    log_start_offset: int | None = None
    checksum: int | None = None
    serialized_key_size: int = -1
    serialized_value_size: int = -1
    serialized_header_size: int = -1
