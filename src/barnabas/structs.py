"""Small value types of the clients, under the names that Kafka users know."""

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
    """The replica of a partition on one broker."""

    topic: str
    partition: int
    broker_id: int


class OffsetAndMetadata(NamedTuple):
    """What a group commits for a partition: the next offset to read, and an optional note."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class OffsetAndTimestamp(NamedTuple):
    """An offset that was looked up by timestamp."""

    offset: int
    timestamp: int | None
    leader_epoch: int = -1


class BrokerMetadata(NamedTuple):
    """Address of a broker. `nodeId` is spelled as in kafka-python and aiokafka."""

    nodeId: int
    host: str
    port: int
    rack: str | None = None


class PartitionMetadata(NamedTuple):
    """Leader and replicas of a partition, or the error in their place."""

    topic: str
    partition: int
    leader: int
    replicas: list[int]
    isr: list[int]
    error: BarnabasError | None = None


class RecordMetadata(NamedTuple):
    """Where a record was written. `timestamp_type` is 0 for CreateTime, 1 for LogAppendTime."""

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
