"""From which cluster a mirror copies to which, and what things are called on the way."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Route:
    """The ids of both clusters, the topic of positions, and what goes before topics' names."""

    source_id: str
    target_id: str
    positions_topic: str
    prefix: str = ""

    @property
    def group(self) -> str:
        """The group on the target whose offsets are the marks of shared work."""
        return self.positions_topic

    def target_of(self, partition: TopicPartition) -> TopicPartition:
        """Return where records of a partition of the source go."""
        return TopicPartition(self.prefix + partition.topic, partition.partition)

    def source_of(self, partition: TopicPartition) -> TopicPartition | None:
        """Return where records of a partition of the target come from; None: not from there."""
        if not partition.topic.startswith(self.prefix):
            return None
        return TopicPartition(partition.topic.removeprefix(self.prefix), partition.partition)
