"""Which offset is asked for, and what was found or deleted."""

from __future__ import annotations

from barnabas.admin.offsets import FoundOffset
from barnabas.admin.offsets import OffsetSpec as Position


class OffsetSpec:
    """An offset to look up: `OffsetSpec.latest()`, `OffsetSpec.for_timestamp(…)`, …"""

    def __init__(self, timestamp: int) -> None:
        self.timestamp = timestamp

    @classmethod
    def earliest(cls) -> OffsetSpec:
        """Return the first offset."""
        return cls(int(Position.EARLIEST))

    @classmethod
    def latest(cls) -> OffsetSpec:
        """Return the offset after the last record."""
        return cls(int(Position.LATEST))

    @classmethod
    def max_timestamp(cls) -> OffsetSpec:
        """Return the offset of the record with the highest timestamp."""
        return cls(int(Position.MAX_TIMESTAMP))

    @classmethod
    def for_timestamp(cls, timestamp: int) -> OffsetSpec:
        """Return the first offset at or after a time."""
        return cls(timestamp)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OffsetSpec) and self.timestamp == other.timestamp

    def __hash__(self) -> int:
        return hash(self.timestamp)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, OffsetSpec):
            return NotImplemented
        return self.timestamp < other.timestamp


class ListOffsetsResultInfo:
    """An offset that was found."""

    def __init__(self, offset: int, timestamp: int, leader_epoch: int) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.leader_epoch = leader_epoch if leader_epoch >= 0 else None


class DeletedRecords:
    """Where a partition begins now."""

    def __init__(self, low_watermark: int) -> None:
        self.low_watermark = low_watermark


def result_of(found: FoundOffset) -> ListOffsetsResultInfo:
    """Return an offset that was found."""
    return ListOffsetsResultInfo(found.offset, found.timestamp_ms, found.leader_epoch)
