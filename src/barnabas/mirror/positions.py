"""The offsets that the source was read up to, as records of a compacted topic on the target.

    key    ["orders", 3]                                topic and partition of the source
    value  {"next": 1500, "topic_id": "4f…"}            the offset to read next, and of which topic

They are written in the transaction that copies the records up to there. Each mirror has a topic
of its own, as an open transaction of another mirror would hide what comes after it. The topic id
identifies a topic that was deleted and recreated, whose offsets start over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition

TOPIC_PREFIX = "barnabas-mirror."
TOPIC_CONFIGS = {"cleanup.policy": "compact", "compression.type": "producer"}


class PositionsError(BarnabasError):
    """The positions topic has a record that no mirror wrote."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where to continue in a source partition."""

    next_offset: int
    topic_id: str


class MirrorPositions:
    """The position of each partition, and which of them have changed since the last commit."""

    def __init__(self) -> None:
        self._known: dict[TopicPartition, Position] = {}
        self._changed: dict[TopicPartition, None] = {}

    def __bool__(self) -> bool:
        return bool(self._known)

    @property
    def changed(self) -> bool:
        """Whether there is something to write."""
        return bool(self._changed)

    @property
    def known(self) -> Mapping[TopicPartition, Position]:
        """All positions."""
        return self._known

    def unwritten(self) -> dict[TopicPartition, Position]:
        """Return the positions that are to be written."""
        return {each: self._known[each] for each in self._changed}

    def learn(self, positions: Mapping[TopicPartition, Position]) -> None:
        """Take over positions that a task has written."""
        self._known.update(positions)

    def load(self, key: bytes | None, value: bytes | None) -> None:
        """Load a record of the positions topic; a later one replaces an earlier."""
        try:
            topic, partition = json.loads(key or b"")
            source = TopicPartition(str(topic), int(partition))
            if value is None:
                self._known.pop(source, None)
                return
            found = json.loads(value)
            self._known[source] = Position(int(found["next"]), str(found["topic_id"]))
        except (ValueError, TypeError, KeyError) as failure:
            raise PositionsError(
                f"a record with key {key!r} and value {value!r} is not a position of a mirror"
            ) from failure

    def find(self, partition: TopicPartition, topic_id: str) -> int | None:
        """Return the next offset; None if this partition, of this topic id, was never read."""
        position = self._known.get(partition)
        if position is None or position.topic_id != topic_id:
            return None
        return position.next_offset

    def move(self, partition: TopicPartition, next_offset: int, topic_id: str) -> None:
        """Set the position of a partition."""
        self._known[partition] = Position(next_offset, topic_id)
        self._changed[partition] = None

    def rows(self) -> list[tuple[bytes, bytes]]:
        """Return the keys and values of the records to write."""
        rows = []
        for partition, position in self.unwritten().items():
            value = {"next": position.next_offset, "topic_id": position.topic_id}
            rows.append((json.dumps(list(partition)).encode(), json.dumps(value).encode()))
        return rows

    def written(self) -> None:
        """Mark everything as written: the transaction is committed."""
        self._changed.clear()
