"""How far a stream has read: the JSON that Spark keeps in its checkpoint.

    {"version": 1, "tasks": 2,
     "topics": {"orders": {"id": "mXzk…", "offsets": {"0": 120, "1": 98}}},
     "begun": {"orders": {"0": 20, "1": 0}}}

`begun` has the first offsets of partitions that the offset before this one did not have: all of
them in the first batch, new ones later. With `tasks` and `maxRecords` (of one task, where options
limit it) it makes a batch and its tasks a function of two stored offsets, whatever the options say
when it is replayed. A topic's id tells a topic that was deleted and created again from the one that
was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.model.ids import TopicPartition
from barnabas.spark.errors import CheckpointError
from barnabas.spark.plan import Range

VERSION = 1

INITIAL: dict[str, Any] = {"version": VERSION, "initial": True}
"""Before the first batch. It names no offset, since Spark asks for it again after a failure."""


@dataclass(frozen=True, slots=True)
class Positions:
    """Offsets to read next, by partition, and what a replay of the batch before them needs."""

    offsets: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, str]
    tasks: int
    begun: Mapping[TopicPartition, int] = field(default_factory=dict)
    records_max: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what the checkpoint keeps."""
        topics: dict[str, Any] = {}
        for place in sorted(self.offsets):
            topic = topics.setdefault(
                place.topic, {"id": self.topic_ids.get(place.topic, ""), "offsets": {}}
            )
            topic["offsets"][str(place.partition)] = self.offsets[place]
        stored: dict[str, Any] = {"version": VERSION, "tasks": self.tasks, "topics": topics}
        if self.begun:
            begun: dict[str, dict[str, int]] = {}
            for place in sorted(self.begun):
                begun.setdefault(place.topic, {})[str(place.partition)] = self.begun[place]
            stored["begun"] = begun
        if self.records_max is not None:
            stored["maxRecords"] = self.records_max
        return stored


def parse_positions(stored: Mapping[str, Any]) -> Positions | None:
    """Read what the checkpoint kept; None for the place before the first batch."""
    version = stored.get("version")
    if version != VERSION:
        raise CheckpointError(
            f"the checkpoint has offsets of version {version!r}, of this source only version "
            f"{VERSION} can be read: was it written by another source? {dict(stored)}"
        )
    if stored.get("initial"):
        return None
    try:
        return Positions(
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
            f"the checkpoint's offsets cannot be read ({failure!r}): {dict(stored)}"
        ) from failure


def ranges_between(start: Positions | None, end: Positions) -> list[Range]:
    """Return what a batch reads: from one stored offset to the next."""
    first = {**(start.offsets if start is not None else {}), **end.begun}
    return [
        Range(place.topic, place.partition, first.get(place, until), until)
        for place, until in sorted(end.offsets.items())
    ]
