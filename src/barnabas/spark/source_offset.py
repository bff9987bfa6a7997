"""The offset of a stream: the JSON that Spark stores in its checkpoint.

    {"version": 1, "tasks": 2,
     "topics": {"orders": {"id": "mXzk…", "offsets": {"0": 120, "1": 98}}},
     "begun": {"orders": {"0": 20, "1": 0}}}

`begun` has the first offsets of partitions that the previous offset did not have: all of
them in the first batch, new ones later. With `tasks` and `maxRecords` (of one task, if options
limit it) it makes a micro-batch and its tasks a function of two stored offsets, whatever the
options are when it is replayed. The topic id identifies a topic that was deleted and recreated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.model.ids import TopicPartition
from barnabas.spark.errors import CheckpointError
from barnabas.spark.offset_ranges import OffsetRange

VERSION = 1

INITIAL: dict[str, Any] = {"version": VERSION, "initial": True}
"""Before the first batch. It has no offsets, since Spark asks for it again after a failure."""


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """The next offset of each partition, and what a replay of the batch before them needs."""

    offsets: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, str]
    tasks: int
    begun: Mapping[TopicPartition, int] = field(default_factory=dict)
    records_max: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON for the checkpoint."""
        topics: dict[str, Any] = {}
        for partition in sorted(self.offsets):
            topic = topics.setdefault(
                partition.topic, {"id": self.topic_ids.get(partition.topic, ""), "offsets": {}}
            )
            topic["offsets"][str(partition.partition)] = self.offsets[partition]
        stored: dict[str, Any] = {"version": VERSION, "tasks": self.tasks, "topics": topics}
        if self.begun:
            begun: dict[str, dict[str, int]] = {}
            for partition in sorted(self.begun):
                begun.setdefault(partition.topic, {})[str(partition.partition)] = self.begun[
                    partition
                ]
            stored["begun"] = begun
        if self.records_max is not None:
            stored["maxRecords"] = self.records_max
        return stored


def parse_source_offset(stored: Mapping[str, Any]) -> SourceOffset | None:
    """Parse the JSON of the checkpoint; None for the offset before the first batch."""
    version = stored.get("version")
    if version != VERSION:
        raise CheckpointError(
            f"the checkpoint has offsets of version {version!r}, but this source reads only "
            f"version {VERSION}: was it written by another source? {dict(stored)}"
        )
    if stored.get("initial"):
        return None
    try:
        return SourceOffset(
            {
                TopicPartition(topic, int(number)): int(offset)
                for topic, entry in stored["topics"].items()
                for number, offset in entry["offsets"].items()
            },
            {topic: str(entry["id"]) for topic, entry in stored["topics"].items()},
            int(stored["tasks"]),
            {
                TopicPartition(topic, int(number)): int(offset)
                for topic, numbers in stored.get("begun", {}).items()
                for number, offset in numbers.items()
            },
            int(stored["maxRecords"]) if "maxRecords" in stored else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as failure:
        raise CheckpointError(
            f"the checkpoint's offsets cannot be parsed ({failure!r}): {dict(stored)}"
        ) from failure


def ranges_between(start: SourceOffset | None, end: SourceOffset) -> list[OffsetRange]:
    """Return the offset ranges of a batch, from one stored offset to the next."""
    first = {**(start.offsets if start is not None else {}), **end.begun}
    return [
        OffsetRange(partition.topic, partition.partition, first.get(partition, until), until)
        for partition, until in sorted(end.offsets.items())
    ]
