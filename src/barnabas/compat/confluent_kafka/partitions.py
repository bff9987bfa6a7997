"""`TopicPartition`, and the offsets that have a meaning."""

from __future__ import annotations

from operator import index

from barnabas.compat.confluent_kafka.error import KafkaError
from barnabas.model import ids
from barnabas.structs import OffsetAndMetadata

OFFSET_BEGINNING = -2
OFFSET_END = -1
OFFSET_STORED = -1000
OFFSET_INVALID = -1001


class TopicPartition:
    """A partition, with an offset, metadata and an error where a call uses them.

    Equality is that of topic and partition.
    """

    __slots__ = ("_error", "leader_epoch", "metadata", "offset", "partition", "topic")

    def __init__(
        self,
        topic: str,
        partition: int = -1,
        offset: int = OFFSET_INVALID,
        metadata: str | None = None,
        leader_epoch: int | None = None,
    ) -> None:
        if not isinstance(topic, str):
            raise TypeError(f"topic must be a str, not {type(topic).__name__}")
        self.topic = topic
        self.partition = index(partition)
        self.offset = index(offset)
        self.metadata = metadata
        self.leader_epoch = leader_epoch
        self._error: KafkaError | None = None

    @property
    def error(self) -> KafkaError | None:
        """Why the call failed for this partition; None if it did not."""
        return self._error

    @property
    def key(self) -> ids.TopicPartition:
        """The partition as our clients name it."""
        return ids.TopicPartition(self.topic, self.partition)

    def __repr__(self) -> str:
        return (
            f"TopicPartition{{topic={self.topic},partition={self.partition},"
            f"offset={self.offset},leader_epoch={self.leader_epoch},error={self._error}}}"
        )

    def __hash__(self) -> int:
        return hash((self.topic, self.partition))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopicPartition):
            return NotImplemented
        return (self.topic, self.partition) == (other.topic, other.partition)

    def __lt__(self, other: TopicPartition) -> bool:
        return (self.topic, self.partition) < (other.topic, other.partition)

    def __le__(self, other: TopicPartition) -> bool:
        return (self.topic, self.partition) <= (other.topic, other.partition)

    def __gt__(self, other: TopicPartition) -> bool:
        return (self.topic, self.partition) > (other.topic, other.partition)

    def __ge__(self, other: TopicPartition) -> bool:
        return (self.topic, self.partition) >= (other.topic, other.partition)


def with_error(partition: TopicPartition, error: KafkaError | None) -> TopicPartition:
    """Return a partition that says why a call failed for it."""
    partition._error = error
    return partition


def listed(partitions: object) -> list[TopicPartition]:
    """Check that an argument is a list of partitions, and return it."""
    if not isinstance(partitions, (list, tuple)):
        raise TypeError(f"expected a list of TopicPartition, not {type(partitions).__name__}")
    for each in partitions:
        if not isinstance(each, TopicPartition):
            raise TypeError(f"expected a TopicPartition, not {type(each).__name__}")
    return list(partitions)


def from_key(key: ids.TopicPartition, offset: int = OFFSET_INVALID) -> TopicPartition:
    """Return a partition of ours."""
    return TopicPartition(key.topic, key.partition, offset)


def to_commit(partition: TopicPartition) -> OffsetAndMetadata:
    """Return what is committed for a partition."""
    epoch = -1 if partition.leader_epoch is None else partition.leader_epoch
    return OffsetAndMetadata(partition.offset, partition.metadata or "", epoch)


def from_commit(key: ids.TopicPartition, found: OffsetAndMetadata | None) -> TopicPartition:
    """Return a partition with what was committed for it."""
    if found is None or found.offset < 0:
        return from_key(key)
    epoch = found.leader_epoch if found.leader_epoch >= 0 else None
    return TopicPartition(key.topic, key.partition, found.offset, found.metadata or None, epoch)
