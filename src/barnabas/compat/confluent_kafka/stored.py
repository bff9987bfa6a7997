"""The offsets that a commit without arguments commits: a plain object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.kernels import ConsumerRecord
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata


class StoredOffsets:
    """Per partition: the last record that the program got, the stored and the committed offset."""

    def __init__(self, *, automatic: bool) -> None:
        """`automatic`: what is handed out is stored."""
        self._automatic = automatic
        self._last: dict[tuple[str, int], ConsumerRecord] = {}
        self._stored: dict[TopicPartition, OffsetAndMetadata] = {}
        self._committed: dict[TopicPartition, OffsetAndMetadata] = {}

    def handed_out(self, record: ConsumerRecord) -> None:
        """Record that the program got a record, and all before it."""
        self._last[record.topic, record.partition] = record

    def store(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Store offsets."""
        self._stored.update(offsets)

    def position(self, partition: TopicPartition) -> OffsetAndMetadata | None:
        """Return the offset after the last record that was handed out."""
        record = self._last.get(partition)
        if record is None:
            return None
        epoch = -1 if record.leader_epoch is None else record.leader_epoch
        return OffsetAndMetadata(record.offset + 1, "", epoch)

    def to_commit(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what is stored and not committed yet, of all partitions or some."""
        stored = self._stored
        if self._automatic:
            keys = [TopicPartition(*key) for key in self._last]
            found = ((key, self.position(key)) for key in keys)
            stored = {key: position for key, position in found if position is not None}
        wanted = None if partitions is None else set(partitions)
        return {
            key: offset
            for key, offset in stored.items()
            if self._committed.get(key) != offset and (wanted is None or key in wanted)
        }

    def committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Record that offsets were committed."""
        self._committed.update(offsets)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget partitions: they were given up, or are read from elsewhere."""
        for partition in partitions:
            self._last.pop(partition, None)
            self._stored.pop(partition, None)
            self._committed.pop(partition, None)
