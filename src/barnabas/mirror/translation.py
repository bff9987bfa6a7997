"""Which offset of a target partition stands for one of the source: a search in the stamps.

Stamps of one source only grow within a partition, so the first record at or after a source offset
is found by halving. Records without a stamp may stand anywhere between: a probe looks from its
middle on for the first stamped record. The answer is the offset of that first record, or the end:
what the mirror has not copied yet will come there or later.
"""

from __future__ import annotations

from dataclasses import dataclass

NEAR = 64
"""Offsets that are read on rather than halved."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Read from `offset` on, for the first stamped record before `end`."""

    offset: int
    end: int


class Search:
    """One search; `probe` is what to read next, None when `answer` is final."""

    def __init__(self, wanted: int, start: int, end: int) -> None:
        """Look for the first record from source offset `wanted` on, in offsets start to end."""
        assert start <= end
        self._wanted = wanted
        self._low = start  # every stamp before it is below the wanted one
        self._high = end  # no stamp stands from here up to the answer
        self._asked = start
        self.answer = end

    @property
    def probe(self) -> Probe | None:
        """What to read next."""
        width = self._high - self._low
        if width <= 0:
            return None
        self._asked = self._low if width <= NEAR else self._low + width // 2
        return Probe(self._asked, self._high)

    def found(self, offset: int, source_offset: int) -> None:
        """Hear of the first stamped record from the probe's offset on."""
        assert self._asked <= offset < self._high
        if source_offset < self._wanted:
            self._low = offset + 1
        else:
            self.answer, self._high = offset, self._asked

    def nothing(self) -> None:
        """Hear that no stamped record stands between the probe and its end."""
        self._high = self._asked
