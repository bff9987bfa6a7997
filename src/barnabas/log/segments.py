"""The segments of one log in the order of their base offsets; the last one is written to.

There is always at least one. A lookup that finds nothing in a segment continues in the next one,
because compaction can leave a gap at a segment's end.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import attrgetter, is_

from barnabas.log.segment import Segment
from barnabas.log.slice import Slice
from barnabas.log.transaction_index import AbortedTransaction


class Segments:
    """A sorted list of segments."""

    __slots__ = ("_bases", "_items", "active")

    def __init__(self, items: Sequence[Segment]) -> None:
        self._items = list(items)
        self._bases = [segment.base_offset for segment in items]
        self.active = self._items[-1]

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> Segment:
        return self._items[index]

    @property
    def size_bytes(self) -> int:
        """Bytes of batches in all of them."""
        return sum(segment.size_bytes for segment in self._items)

    def append(self, segment: Segment) -> None:
        """Add the next segment, which becomes the active one."""
        assert segment.base_offset > self._bases[-1], segment.base_offset
        self._items.append(segment)
        self._bases.append(segment.base_offset)
        self.active = segment

    def assert_order(self) -> None:
        """Check that base offsets grow, and that the last segment is the one written to."""
        bases = [segment.base_offset for segment in self._items]
        assert bases == self._bases == sorted(set(bases)), (bases, self._bases)
        assert self.active is self._items[-1], self.active.base_offset

    def index_of(self, offset: int) -> int:
        """Return the index of the segment whose range holds an offset; 0 below the first."""
        return max(bisect_right(self._bases, offset) - 1, 0)

    def starting_at(self, offset: int) -> list[Segment]:
        """Return the segment that holds an offset and all later ones."""
        return self._items[self.index_of(offset) :]

    def base_after(self, segment: Segment) -> int | None:
        """Return where the next segment starts, None after the active one."""
        index = bisect_right(self._bases, segment.base_offset)
        return self._bases[index] if index < len(self._bases) else None

    def remove_above(self, offset: int) -> None:
        """Remove the segments that start above an offset; the first one always stays."""
        keep = self.index_of(offset) + 1
        removed = self._items[keep:]
        del self._items[keep:], self._bases[keep:]
        self.active = self._items[-1]
        for segment in removed:
            segment.remove()

    def remove_first(self, count: int) -> list[Segment]:
        """Take the oldest segments out of the list and return them; the active one always stays."""
        assert count < len(self._items), count
        removed = self._items[:count]
        del self._items[:count], self._bases[:count]
        return removed

    def holds(self, segments: Sequence[Segment]) -> bool:
        """Return whether these segments are here, one after the other, below the active one."""
        start = self.index_of(segments[0].base_offset)
        found = self._items[start : start + len(segments)]
        return (
            self.active not in segments
            and len(found) == len(segments)
            and all(map(is_, found, segments))
        )

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Replace several segments by the one that was built from them."""
        assert new.base_offset == old[0].base_offset, new.base_offset
        assert self.holds(old), new.base_offset
        start = self.index_of(new.base_offset)
        self._items[start : start + len(old)] = [new]
        self._bases[start : start + len(old)] = [new.base_offset]

    def read(self, offset: int, max_bytes: int, bound: int | None, at_least_one: bool) -> Slice:
        """Return batches of one segment from `offset` on that end below `bound`, if it is given."""
        bases = self._bases
        index = len(bases) - 1
        if offset < bases[-1]:
            index = self.index_of(offset)
        segment = self._items[index]
        found = segment.find(offset)
        while found is None:
            index += 1
            if index == len(bases):
                return Slice(None, 0, 0, 0, segment.base_offset)
            segment = self._items[index]
            found = segment.find(offset)
        position, first_size, void = found
        end = segment.size_bytes
        if bound is not None and (index + 1 == len(bases) or bound < bases[index + 1]):
            reaching = segment.find(bound)
            if reaching is not None:
                end = reaching[0]
        size = first_size if at_least_one and first_size > max_bytes else max_bytes
        if size > end - position:
            size = end - position
        if size <= 0:
            return Slice(None, 0, 0, 0, segment.base_offset)
        return Slice(segment.file, position, size, first_size, segment.base_offset, void)

    def upper_bound_offset(self, piece: Slice) -> int | None:
        """Return an offset that all batches of a slice are below; None when only the log's end is
        known to be one.
        """
        segment = self._items[self.index_of(piece.segment_base_offset)]
        after = segment.offset_index.offset_after(piece.position + piece.size)
        return self.base_after(segment) if after is None else after

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that a read of [from, to) may meet."""
        found = []
        for segment in self.starting_at(from_offset):
            entries = segment.aborted
            if not entries:
                continue
            start = bisect_left(entries, from_offset, key=attrgetter("last_offset"))
            for entry in islice(entries, start, None):
                if entry.first_offset < to_offset:
                    found.append(entry)
                if entry.last_stable_offset >= to_offset:
                    return found
        return found
