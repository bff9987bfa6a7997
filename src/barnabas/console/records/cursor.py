"""Cursors: where a list of records goes on, as a short opaque part of a URL.

A cursor has positions and counts only. A user who changes one reads other offsets of the same
topic, with the same permissions; so it is checked for sense, not signed.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from dataclasses import dataclass, field
from typing import Final

VERSION: Final = 1
TEXT_MAX: Final = 24 * 1024
DATA_MAX: Final = 256 * 1024
OFFSET_MAX: Final = 2**63 - 1


class CursorError(ValueError):
    """A cursor that is not one of ours."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """What is left to read of each partition, and what was read so far."""

    spans: dict[int, tuple[int, int]]
    """By partition: the offsets that are left, from the first, before the second."""
    total: int = 0
    """Offsets that there were in all."""
    records: int = 0
    size: int = 0
    skipped: int = 0
    unreadable: int = 0
    found: int = 0
    until_ms: int = field(default=-1)
    """The time up to which everything was searched; -1 if unknown."""

    def encode(self) -> str:
        """Return the text for a URL."""
        numbers = [
            VERSION,
            self.total,
            self.records,
            self.size,
            self.skipped,
            self.unreadable,
            self.found,
            self.until_ms + 1,
            len(self.spans),
        ]
        before = -1
        for partition, (low, high) in sorted(self.spans.items()):
            numbers += (partition - before - 1, low, high - low)
            before = partition
        data = bytearray()
        for number in numbers:
            _write(data, max(number, 0))
        return base64.urlsafe_b64encode(zlib.compress(bytes(data), 9)).rstrip(b"=").decode()


def decode_cursor(text: str) -> Cursor:
    """Return the cursor of a URL; raise CursorError."""
    if len(text) > TEXT_MAX:
        raise CursorError(f"a cursor of {len(text)} characters: at most {TEXT_MAX}")
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(packed, DATA_MAX)
    except (binascii.Error, ValueError, zlib.error):
        raise CursorError("the cursor is damaged: begin again") from None
    numbers = _read(data)
    if len(numbers) < 9 or numbers[0] != VERSION or len(numbers) != 9 + 3 * numbers[8]:
        raise CursorError("the cursor is damaged: begin again")
    spans: dict[int, tuple[int, int]] = {}
    partition = -1
    for at in range(9, len(numbers), 3):
        partition += numbers[at] + 1
        low, high = numbers[at + 1], numbers[at + 1] + numbers[at + 2]
        if high > OFFSET_MAX or partition > 2**31 - 1:
            raise CursorError("the cursor is damaged: begin again")
        spans[partition] = (low, high)
    _, total, records, size, skipped, unreadable, found, until, _ = numbers[:9]
    return Cursor(spans, total, records, size, skipped, unreadable, found, until - 1)


def _write(data: bytearray, number: int) -> None:
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)


def _read(data: bytes) -> list[int]:
    numbers: list[int] = []
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
            continue
        shift += 7
        if shift > 63:
            raise CursorError("the cursor is damaged: begin again")
    return numbers
