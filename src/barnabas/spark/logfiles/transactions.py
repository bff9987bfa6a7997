"""Which records of a partition no transaction committed, from its batches alone.

Aborted transactions end in an abort marker; those that are open have no marker yet. The
batches are read, not the transaction indexes: a running or crashed broker may not have written
these. Only headers are read, of the whole partition: a transaction may begin in one
segment and end in another.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from barnabas.kernels import CONTROL_BIT, TRANSACTIONAL_BIT, Record
from barnabas.model.errors import CorruptRecordError
from barnabas.records.batch import read_batch
from barnabas.records.control import ControlType, read_marker
from barnabas.spark.logfiles.walk import Entry

OPEN_END = 2**63 - 1


class Uncommitted(NamedTuple):
    """Batches of a producer from one offset to another, both included."""

    producer_id: int
    first: int
    last: int


def control_record(entry: Entry) -> Record | None:
    """Return the record of a control batch; None if compaction has emptied it."""
    assert entry.header is not None
    return next(iter(read_batch(entry.buffer, entry.header, entry.at)), None)


class Transactions:
    """The transactions of one partition, followed batch by batch."""

    def __init__(self) -> None:
        self._begun: dict[int, int] = {}
        self._aborted: list[Uncommitted] = []

    def follow(self, entries: Iterable[Entry]) -> None:
        """Process the batches of the next segment."""
        for entry in entries:
            header = entry.header
            if header is None or not header.attributes & (CONTROL_BIT | TRANSACTIONAL_BIT):
                continue
            producer = header.producer_id
            if not header.is_control:
                self._begun.setdefault(producer, header.base_offset)
            elif (ending := _ending(entry)) is not None:
                first = self._begun.pop(producer, None)
                if first is not None and ending is ControlType.ABORT:
                    self._aborted.append(Uncommitted(producer, first, header.base_offset))

    def uncommitted(self) -> list[Uncommitted]:
        """Return what is not committed as of the last batch."""
        left = [Uncommitted(producer, first, OPEN_END) for producer, first in self._begun.items()]
        return self._aborted + left


def _ending(entry: Entry) -> ControlType | None:
    try:
        record = control_record(entry)
        marker = None if record is None else read_marker(record)
    except CorruptRecordError:
        return None  # reading the batch reports it
    return None if marker is None else marker.type


class UncommittedBatches:
    """Returns whether a batch was committed.

    A producer has one transaction at a time, so those of one follow each other.
    """

    def __init__(self, found: Iterable[Uncommitted]) -> None:
        self._firsts: dict[int, list[int]] = {}
        self._lasts: dict[int, list[int]] = {}
        for producer, first, last in sorted(found):
            self._firsts.setdefault(producer, []).append(first)
            self._lasts.setdefault(producer, []).append(last)

    def holds(self, producer_id: int, base_offset: int) -> bool:
        """Return whether a transactional batch belongs to what is not committed."""
        number = bisect_right(self._firsts.get(producer_id, ()), base_offset) - 1
        return number >= 0 and base_offset <= self._lasts[producer_id][number]
