"""Searches for entries in bytes that may be damaged: where one can begin, what size it claims.

An entry is a batch of magic 2, or a message (or a wrapper of messages) of magic 0 or 1. What is
found here is a guess, which the caller confirms by the entry's checksum. Files are read through a
function, `read(size, position)`, that returns fewer bytes only where the file ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from barnabas.kernels.batch_header import (
    BATCH_MAGIC,
    HEADER_SIZE,
    MAGIC_AT,
    MESSAGE_MIN,
    size_at,
)

Read: TypeAlias = Callable[[int, int], bytes]

START_SIZE = MAGIC_AT + 1
"""Bytes that every format begins with: offset, size, four of its own, magic."""

CHUNK_BYTES = 1024 * 1024  # a multiple of any disk's sectors


def entry_size(data: bytes, position: int = 0) -> int | None:
    """Return how many bytes the entry at a position takes; None if there can be none."""
    magic, size = data[position + MAGIC_AT], size_at(data, position)
    if magic > BATCH_MAGIC or size < (HEADER_SIZE if magic == BATCH_MAGIC else MESSAGE_MIN):
        return None
    return size


def chunks(read: Read, position: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield (position, bytes) of a stretch, piece by piece."""
    while position < end:
        data = read(min(CHUNK_BYTES, end - position), position)
        if not data:
            return
        yield position, data
        position += len(data)


def is_zero(read: Read, position: int, end: int) -> bool:
    """Return whether only zeros follow: a file may be preallocated before it is filled."""
    for start, data in chunks(read, position, end):
        if data.strip(b"\0"):
            return False
        position = start + len(data)
    return position >= end


def possible_entries(read: Read, position: int, end: int, offset: int) -> Iterator[int]:
    """Yield the positions where an entry may begin, of an offset that is not far above this one."""
    high = offset >> 32
    prefixes = b"|".join(re.escape(each.to_bytes(4, "big")) for each in (high, high + 1))
    # Offset, a size that is not 0, four bytes, a magic; found at overlapping positions, too.
    pattern = re.compile(
        rb"(?=(?:" + prefixes + rb").{4}(?!\0{4})[\0-\x7f].{3}.{4}[\0-\x02])", re.DOTALL
    )
    while end - position >= START_SIZE:
        data = read(min(CHUNK_BYTES, end - position), position)
        if len(data) < START_SIZE:
            return
        for found in pattern.finditer(data):
            yield position + found.start()
        position += len(data) - START_SIZE + 1
