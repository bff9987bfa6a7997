"""Rows of a list of records: records, transaction markers, holes, and what cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from barnabas.kernels import BatchHeader

Headers = tuple[tuple[str, bytes | None], ...]


class Kind(Enum):
    """What a row stands for."""

    RECORD = "record"
    MARKER = "marker"
    """The end of a transaction; consumers never see it."""
    HOLE = "hole"
    """Offsets without a record: compacted away, or of records that were deleted."""
    UNREADABLE = "unreadable"
    """A batch that cannot be decoded."""


class Outcome(Enum):
    """What became of a transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"


@dataclass(slots=True)
class Row:
    """One row; a hole and an unreadable batch have several offsets."""

    kind: Kind
    partition: int
    offset: int
    timestamp: int
    last_offset: int
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    batch: BatchHeader | None = None
    note: str = ""
    outcome: Outcome | None = None
    """Of its transaction, if it belongs to one."""

    @property
    def is_record(self) -> bool:
        return self.kind is Kind.RECORD

    @property
    def size(self) -> int:
        """Bytes of key and value."""
        return len(self.key or b"") + len(self.value or b"")

    @property
    def place(self) -> str:
        """Partition and offset, as forms send them."""
        return f"{self.partition}:{self.offset}"
