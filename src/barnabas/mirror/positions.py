"""How far the source was read, as records of a compacted topic on the target.

    key    ["orders", 3]                                topic and partition of the source
    value  {"next": 1500, "topic_id": "4f…"}            the offset to read next, and of which topic

They are written in the transaction that writes the records up to there. Each mirror has a topic
of its own, as an open transaction of another mirror would hide what comes after it. The topic's id
tells a topic that was deleted and made anew, whose offsets begin again.
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
    """The positions topic holds something that no mirror wrote."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where to go on in a partition of the source."""

    next_offset: int
    topic_id: str


class Positions:
    """What was read, and which of it is not yet written down."""

    def __init__(self) -> None:
        self._known: dict[TopicPartition, Position] = {}
        self._changed: dict[TopicPartition, None] = {}

    def __bool__(self) -> bool:
        return bool(self._known)

    @property
    def changed(self) -> bool:
        """Whether there is something to write down."""
        return bool(self._changed)

    @property
    def known(self) -> Mapping[TopicPartition, Position]:
        """All that was read."""
        return self._known

    def unwritten(self) -> dict[TopicPartition, Position]:
        """Return what is to be written down."""
        return {each: self._known[each] for each in self._changed}

    def learn(self, positions: Mapping[TopicPartition, Position]) -> None:
        """Take over what somebody else has written down."""
        self._known.update(positions)

    def load(self, key: bytes | None, value: bytes | None) -> None:
        """Take over a record of the positions topic; a later one replaces an earlier."""
        try:
            topic, partition = json.loads(key or b"")
            place = TopicPartition(str(topic), int(partition))
            if value is None:
                self._known.pop(place, None)
                return
            found = json.loads(value)
            self._known[place] = Position(int(found["next"]), str(found["topic_id"]))
        except (ValueError, TypeError, KeyError) as failure:
            raise PositionsError(
                f"a record with key {key!r} and value {value!r} is no position of a mirror"
            ) from failure

    def find(self, partition: TopicPartition, topic_id: str) -> int | None:
        """Return where to go on; None for a partition, or a topic of this id, never read."""
        position = self._known.get(partition)
        if position is None or position.topic_id != topic_id:
            return None
        return position.next_offset

    def move(self, partition: TopicPartition, next_offset: int, topic_id: str) -> None:
        """Note how far a partition was read."""
        self._known[partition] = Position(next_offset, topic_id)
        self._changed[partition] = None

    def rows(self) -> list[tuple[bytes, bytes]]:
        """Return keys and values of the records to write."""
        rows = []
        for partition, position in self.unwritten().items():
            value = {"next": position.next_offset, "topic_id": position.topic_id}
            rows.append((json.dumps(list(partition)).encode(), json.dumps(value).encode()))
        return rows

    def written(self) -> None:
        """Forget what had to be written: it is committed."""
        self._changed.clear()
