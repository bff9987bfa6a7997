"""The order in which partitions are read so that rows come out by time, newest or oldest first.

A plain object: `next_window` says what to read, `scanned` takes what was found, `take` returns
rows. Each partition is read in windows from one end. A row is given out when no partition that is
not finished could still have an earlier one of the order; so all partitions advance in time
together, and "searched until 14:03" is true of every one of them. Windows are measured in offsets
and adapt to how many bytes an offset has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from barnabas.console.records.cursor import Cursor
from barnabas.console.records.rows import Kind, Row
from barnabas.console.records.scanning import Scanned

WINDOW_BYTES: Final = 1 << 19
_GROWTH: Final = 8


class Window(NamedTuple):
    """Offsets of one partition to read: from low, before high."""

    partition: int
    low: int
    high: int


@dataclass(slots=True)
class _Partition:
    """What is left of one partition, and its rows that were not given out yet."""

    number: int
    low: int
    high: int
    width: int
    rows: deque[Row] = field(default_factory=deque)
    frontier_ms: int | None = None
    """The time up to which it was read; None before the first window."""

    @property
    def finished(self) -> bool:
        return self.low >= self.high


class Search:
    """Reads spans of partitions backward (newest first) or forward."""

    def __init__(
        self,
        spans: Mapping[int, tuple[int, int]],
        *,
        forward: bool = False,
        width: int = 2000,
        window_bytes: int = WINDOW_BYTES,
        before: Cursor | None = None,
    ) -> None:
        """Begin, or go on after a cursor, whose counts are continued."""
        self._forward = forward
        self._window_bytes = window_bytes
        self._partitions = {
            number: _Partition(number, low, high, width) for number, (low, high) in spans.items()
        }
        self.total = before.total if before else sum(max(h - lo, 0) for lo, h in spans.values())
        self.records = before.records if before else 0
        self.size = before.size if before else 0
        self.skipped = before.skipped if before else 0
        self.unreadable = before.unreadable if before else 0
        self.found = before.found if before else 0
        self._until_ms = before.until_ms if before else -1

    @property
    def forward(self) -> bool:
        return self._forward

    @property
    def left(self) -> int:
        """Offsets that were not read yet."""
        return sum(max(each.high - each.low, 0) for each in self._partitions.values())

    @property
    def finished(self) -> bool:
        """Whether everything was read and given out."""
        return all(each.finished and not each.rows for each in self._partitions.values())

    @property
    def has_rows(self) -> bool:
        """Whether rows were found that are not given out yet."""
        return any(each.rows for each in self._partitions.values())

    @property
    def size_left(self) -> int:
        """About how many bytes were not read yet, if they are like those that were."""
        done = self.total - self.left
        return self.left * self.size // done if done > 0 else 0

    @property
    def until_ms(self) -> int:
        """The time up to which every partition was read; -1 if one was not begun."""
        times = [each.frontier_ms for each in self._partitions.values() if not each.finished]
        known = [each for each in times if each is not None]
        if len(known) < len(times):
            return self._until_ms
        if not known:
            return self._until_ms
        return min(known) if self._forward else max(known)

    def next_window(self) -> Window | None:
        """Return what to read next; None if all is read."""
        return next(iter(self.next_windows(1)), None)

    def next_windows(self, count: int) -> list[Window]:
        """Return what to read next, at the same time if that is several; nothing if all is read."""
        chosen = sorted(self._blocking(), key=self._rank)[:count]
        if not chosen:
            unread = [each for each in self._partitions.values() if not each.finished]
            chosen = sorted(unread, key=self._rank)[:1]
        return [
            Window(
                each.number,
                each.low if self._forward else max(each.low, each.high - each.width),
                each.high,
            )
            for each in chosen
        ]

    def narrowed(self, window: Window, covered: int) -> Window:
        """Return the window to read instead, after one fetch covered only so many offsets of it."""
        partition = self._partitions[window.partition]
        partition.width = max(1, covered)
        return Window(window.partition, max(partition.low, window.high - covered), window.high)

    def widened(self, window: Window, began: int) -> Window:
        """Return the window with all of the batch that it begins in: it is unpacked only once."""
        partition = self._partitions[window.partition]
        return window._replace(low=max(partition.low, min(window.low, began)))

    def scanned(self, window: Window, found: Scanned) -> None:
        """Take the rows of a window."""
        partition = self._partitions[window.partition]
        self.records += found.records
        self.size += found.size
        self.skipped += found.skipped
        self.unreadable += found.unreadable
        if self._forward:
            partition.low = max(partition.low, found.next_offset)
            partition.rows.extend(found.rows)
            edge = found.newest_ms
        else:
            partition.rows.extend(reversed(found.rows))
            offsets = max(window.high - found.first_offset, 1)
            partition.high = min(found.first_offset, window.high)
            edge = found.oldest_ms
            if found.size:
                fitting = self._window_bytes * offsets // found.size
                partition.width = max(1, min(fitting, partition.width * _GROWTH))
            else:
                partition.width *= _GROWTH
        if edge is not None:
            partition.frontier_ms = edge
        elif partition.frontier_ms is None and partition.rows:
            partition.frontier_ms = partition.rows[-1].timestamp

    def give_up(self, window: Window) -> None:
        """Read no more of a partition: nothing came where something was expected."""
        partition = self._partitions[window.partition]
        partition.low = partition.high

    def take(self, limit: int, *, all_found: bool = False) -> list[Row]:
        """Return rows in order; with `all_found` also those that others may still precede."""
        taken: list[Row] = []
        while len(taken) < limit:
            best = self._next_row()
            if best is None or (not all_found and self._blocking()):
                break
            taken.append(best.rows.popleft())
        self.found += sum(row.kind is Kind.RECORD for row in taken)
        return taken

    def cursor(self) -> Cursor | None:
        """Return where to go on; None if nothing is left."""
        if self.finished:
            return None
        spans = {}
        for each in self._partitions.values():
            low, high = each.low, each.high
            if each.rows and self._forward:
                # Rows that were found but not given out are read again.
                low = each.rows[0].offset
            elif each.rows:
                high = each.rows[0].last_offset + 1
            if low < high:
                spans[each.number] = (low, high)
        return Cursor(
            spans,
            self.total,
            self.records,
            self.size,
            self.skipped,
            self.unreadable,
            self.found,
            self.until_ms,
        )

    def _blocking(self) -> list[_Partition]:
        """Return the partitions that must be read before the next row can be given out."""
        empty = [each for each in self._partitions.values() if not each.rows and not each.finished]
        best = self._next_row()
        if best is None:
            return empty
        first = best.rows[0].timestamp
        return [
            each
            for each in empty
            if each.frontier_ms is None
            or (each.frontier_ms < first if self._forward else each.frontier_ms > first)
        ]

    def _next_row(self) -> _Partition | None:
        """Return the partition whose first row is first in the order of time."""
        sign = 1 if self._forward else -1
        return min(
            (each for each in self._partitions.values() if each.rows),
            key=lambda each: (sign * each.rows[0].timestamp, each.number),
            default=None,
        )

    def _rank(self, partition: _Partition) -> tuple[int, int, int]:
        """Return what is read first: what was not begun, then what is behind the others."""
        if partition.frontier_ms is None:
            return 0, 0, partition.number
        sign = 1 if self._forward else -1
        return 1, sign * partition.frontier_ms, partition.number


def merge_holes(rows: list[Row]) -> list[Row]:
    """Return rows in which a hole that windows have cut is one."""
    merged: list[Row] = []
    for row in rows:
        last = merged[-1] if merged else None
        if (
            last is not None
            and row.kind is Kind.HOLE
            and last.kind is Kind.HOLE
            and row.partition == last.partition
        ):
            last.offset = min(last.offset, row.offset)
            last.last_offset = max(last.last_offset, row.last_offset)
        else:
            merged.append(row)
    return merged
