"""The sparse map from timestamps to offsets of one segment (`.timeindex`).

    entry = timestamp int64 | relative offset int32      12 bytes, big-endian, timestamps strictly
    ascending

An entry says: no record before the batch that holds base + relative has a timestamp of `timestamp`
or more. Like the offset index it lives in memory and is written when the segment is closed.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterator

from barnabas.model.errors import CorruptFileError

ENTRY_SIZE = 12


class TimeIndex:
    """Entries of one segment, relative to its base offset."""

    __slots__ = ("_offsets", "_timestamps", "base_offset")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._timestamps = array("q")
        self._offsets = array("i")

    def __len__(self) -> int:
        return len(self._timestamps)

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry, unless its timestamp is not above the last one's, or is none."""
        if timestamp > (self._timestamps[-1] if self._timestamps else -1):
            self._timestamps.append(timestamp)
            self._offsets.append(offset - self.base_offset)

    def entries(self) -> Iterator[tuple[int, int]]:
        """Yield (timestamp, offset) of each entry."""
        for timestamp, offset in zip(self._timestamps, self._offsets, strict=True):
            yield timestamp, self.base_offset + offset

    def floor(self, timestamp: int) -> tuple[int, int]:
        """Return the last (timestamp, offset) at or below a time; (-1, base offset) without one.

        From that offset on a record of `timestamp` or later can be found.
        """
        slot = bisect_right(self._timestamps, timestamp) - 1
        if slot < 0:
            return -1, self.base_offset
        return self._timestamps[slot], self.base_offset + self._offsets[slot]

    def last(self) -> tuple[int, int]:
        """Return the greatest (timestamp, offset); (-1, base offset) without entries."""
        if not self._timestamps:
            return -1, self.base_offset
        return self._timestamps[-1], self.base_offset + self._offsets[-1]

    def truncate(self, offset: int) -> None:
        """Drop the entries of this offset and above."""
        while self._offsets and self.base_offset + self._offsets[-1] >= offset:
            self._offsets.pop()
            self._timestamps.pop()

    def encode(self) -> bytes:
        """Return the content of the file."""
        count = len(self._timestamps)
        timestamps, offsets = self._timestamps[:], self._offsets[:]
        if sys.byteorder == "little":
            timestamps.byteswap()
            offsets.byteswap()
        halves = array("i")
        halves.frombytes(timestamps.tobytes())
        words = array("i", bytes(ENTRY_SIZE * count))
        words[0::3], words[1::3], words[2::3] = halves[0::2], halves[1::2], offsets
        return words.tobytes()

    @classmethod
    def decode(cls, base_offset: int, data: bytes) -> TimeIndex:
        """Read a file; raise CorruptFileError when it cannot be one."""
        if len(data) % ENTRY_SIZE:
            raise CorruptFileError(
                f"time index of {len(data)} bytes, must be a multiple of {ENTRY_SIZE}"
            )
        words = array("i")
        words.frombytes(data)
        halves = array("i", bytes(8 * (len(words) // 3)))
        halves[0::2], halves[1::2] = words[0::3], words[1::3]
        timestamps, offsets = array("q"), words[2::3]
        timestamps.frombytes(halves.tobytes())
        if sys.byteorder == "little":
            timestamps.byteswap()
            offsets.byteswap()
        # A crashed broker may leave a preallocated tail of zeros; a real last entry is above 0.
        while timestamps and timestamps[-1] == 0 and offsets[-1] == 0:
            timestamps.pop()
            offsets.pop()
        if not all(map(int.__lt__, timestamps, timestamps[1:])):
            raise CorruptFileError("time index timestamps are not ascending")
        if offsets and min(offsets) < 0:
            raise CorruptFileError("time index has an offset below the base offset of its segment")
        index = cls(base_offset)
        index._timestamps, index._offsets = timestamps, offsets
        return index
