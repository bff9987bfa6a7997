"""The sparse map from offsets to file positions of one segment (`.index`).

    entry = relative offset int32 | position int32      8 bytes, big-endian, both ascending

An entry says: the append whose last offset is base + relative starts at position. A look-up takes
the greatest entry at or below the wanted offset; the caller scans forward by batch from its
position.

The entries live in memory and are written as one file when the segment is closed. A file with a
preallocated tail of zeros, as a broker that crashed leaves it, reads as the entries before the
zeros.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from barnabas.model.errors import CorruptFileError

_ENTRY = struct.Struct(">ii")
ENTRY_SIZE = _ENTRY.size
OFFSET_SPAN_MAX = 2**31 - 1


def positions_in(data: bytes) -> Iterator[int]:
    """Yield the positions that a file has, believed or not; what is no whole entry is left out."""
    for _, position in _ENTRY.iter_unpack(data[: len(data) // ENTRY_SIZE * ENTRY_SIZE]):
        yield position


class OffsetIndex:
    """Entries of one segment, relative to its base offset."""

    __slots__ = ("_offsets", "_positions", "base_offset")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._offsets = array("i")
        self._positions = array("i")

    def __len__(self) -> int:
        return len(self._offsets)

    def append(self, offset: int, position: int) -> None:
        """Add an entry; offsets and positions ascend."""
        self._offsets.append(offset - self.base_offset)
        self._positions.append(position)

    def entries(self) -> Iterator[tuple[int, int]]:
        """Yield (offset, position) of each entry."""
        for offset, position in zip(self._offsets, self._positions, strict=True):
            yield self.base_offset + offset, position

    def position_of(self, offset: int) -> int:
        """Return where to start scanning for an offset: 0 when no entry lies at or below it."""
        slot = bisect_right(self._offsets, min(offset - self.base_offset, OFFSET_SPAN_MAX)) - 1
        return 0 if slot < 0 else self._positions[slot]

    def offset_after(self, position: int) -> int | None:
        """Return the last offset of the first indexed append at or after a position, if there is
        one.
        """
        slot = bisect_left(self._positions, position)
        return None if slot == len(self._positions) else self.base_offset + self._offsets[slot]

    def last_position(self) -> int:
        """Return where the last indexed append starts, 0 without entries."""
        return self._positions[-1] if self._positions else 0

    def truncate(self, position: int) -> None:
        """Drop the entries of appends that start at or after a position."""
        keep = bisect_left(self._positions, position)
        del self._offsets[keep:], self._positions[keep:]

    def encode(self) -> bytes:
        """Return the content of the file."""
        words = array("i", bytes(ENTRY_SIZE * len(self._offsets)))
        words[0::2] = self._offsets
        words[1::2] = self._positions
        if sys.byteorder == "little":
            words.byteswap()
        return words.tobytes()

    @classmethod
    def decode(cls, base_offset: int, data: bytes, log_size: int) -> OffsetIndex:
        """Read a file; raise CorruptFileError when it fits no log of `log_size` bytes."""
        if len(data) % ENTRY_SIZE:
            raise CorruptFileError(
                f"offset index of {len(data)} bytes, must be a multiple of {ENTRY_SIZE}"
            )
        words = array("i")
        words.frombytes(data)
        if sys.byteorder == "little":
            words.byteswap()
        index = cls(base_offset)
        offsets, positions = words[0::2], words[1::2]
        # The first append of a segment is never indexed, so a real entry has a position above 0.
        while positions and positions[-1] == 0:
            positions.pop()
            offsets.pop()
        if positions and (positions[-1] >= log_size or not _ascends(positions)):
            raise CorruptFileError(
                f"offset index positions are not ascending within a log of {log_size} bytes"
            )
        if offsets and (offsets[0] < 0 or not _ascends(offsets)):
            raise CorruptFileError("offset index offsets are not ascending")
        index._offsets, index._positions = offsets, positions
        return index


def _ascends(values: array[int]) -> bool:
    return all(map(int.__lt__, values, values[1:]))
