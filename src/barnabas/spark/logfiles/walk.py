"""Walks over the entries of a segment file, past whatever is damaged in between.

An entry is a batch of magic 2, or a message (or a wrapper of messages) of magic 0 or 1; all of
them begin with offset int64 and size int32, and have their magic at byte 16. Files are only read:
a broker may be writing them.

After damage the walk continues at the next entry with a valid checksum. Zeros up to the end are
no damage: a file may be preallocated.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.kernels import check_batch, scan_batch
from barnabas.kernels.batch_header import (
    BATCH_MAGIC,
    HEADER_SIZE,
    MAGIC_AT,
    PREFIX_SIZE,
    BatchHeader,
)
from barnabas.model.errors import CorruptRecordError
from barnabas.records.entry_search import START_SIZE, entry_size, is_zero, possible_entries

CHUNK_BYTES = 4 * 1024 * 1024
_WINDOW = 16 * 1024
_PREVIEW = 128  # of records after a header: enough for a transaction marker


class Entry(NamedTuple):
    """A whole entry with a valid checksum: `buffer[at : at + size]`, at `position` of its file."""

    buffer: bytes
    at: int
    size: int
    position: int
    header: BatchHeader | None  # None: a message of magic 0 or 1


@dataclass(frozen=True, slots=True)
class Flaw:
    """Bytes that are not an entry; `unfinished` ones are a partial one at the end of the file."""

    position: int
    size: int
    what: str
    unfinished: bool = False


class LogFile:
    """An open segment file, with its size at the time of opening."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        status = os.fstat(self._descriptor)
        self.size = status.st_size
        self.inode = status.st_ino

    def read(self, size: int, position: int) -> bytes:
        """Return that many bytes, fewer only at the end of the file."""
        data = os.pread(self._descriptor, size, position)
        while len(data) < size and (
            more := os.pread(self._descriptor, size - len(data), position + len(data))
        ):
            data += more
        return data

    def close(self) -> None:
        """Close it."""
        os.close(self._descriptor)

    def __enter__(self) -> LogFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def walk(file: LogFile, position: int, end: int, base_offset: int) -> Iterator[Entry | Flaw]:
    """Yield the entries between two positions; the first is the start of an entry."""
    data, start = b"", position
    while position < end:
        at = position - start
        left = len(data) - at
        if left < START_SIZE and position + left < end:
            data, start = file.read(min(CHUNK_BYTES, end - position), position), position
            if len(data) < min(START_SIZE, end - position):
                return  # the file was truncated since it was opened
            continue
        size = entry_size(data, at) if left >= START_SIZE else None
        if size is not None and left < size <= end - position:
            data, start = file.read(max(size, min(CHUNK_BYTES, end - position)), position), position
            if len(data) < size:
                return
            continue
        if size is None:
            first = data[at : at + START_SIZE]
            what = f"{min(left, START_SIZE)} bytes that are not the start of a batch: {first.hex()}"
        elif size > end - position:
            what = f"a batch has size {size}, only {end - position} bytes are there"
        else:
            try:
                header = _check(data, at, size)
            except CorruptRecordError as failure:
                what = str(failure)
            else:
                yield Entry(data, at, size, position, header)
                position += size
                continue
        if is_zero(file.read, position, end):
            return
        after = _next_entry(file, position, end, base_offset, size)
        cut = left < START_SIZE or (size is not None and size > end - position)
        yield Flaw(position, after - position, what, unfinished=cut and after == end)
        position = after


def walk_headers(file: LogFile, base_offset: int) -> Iterator[Entry]:
    """Yield batches of magic 2 without reading their records.

    An entry's buffer holds its header and up to a few KiB after it.
    """
    position, end = 0, file.size
    data, start = b"", 0
    while end - position >= START_SIZE:
        at = position - start
        if len(data) - at < HEADER_SIZE + _PREVIEW and start + len(data) < end:
            data, start = file.read(min(_WINDOW, end - position), position), position
            at = 0
        size = entry_size(data, at) if len(data) - at >= START_SIZE else None
        if size is None or size > end - position:
            position = _next_entry(file, position, end, base_offset, None)
            continue
        if data[at + MAGIC_AT] == BATCH_MAGIC:
            yield Entry(data, at, size, position, scan_batch(data, at))
        position += size


def entry_at(file: LogFile, position: int, end: int) -> Entry | None:
    """Return the entry at a position; None if there is no whole one with a valid checksum."""
    head = file.read(START_SIZE, position)
    size = entry_size(head, 0) if len(head) == START_SIZE else None
    if size is None or size > end - position:
        return None
    data = file.read(size, position)
    try:
        return Entry(data, 0, size, position, _check(data, 0, size))
    except CorruptRecordError:
        return None


def _check(data: bytes, at: int, size: int) -> BatchHeader | None:
    """Return the header of a complete entry; raise if its checksum is wrong."""
    if data[at + MAGIC_AT] == BATCH_MAGIC:
        return check_batch(data, at, at + size)
    stored = int.from_bytes(data[at + PREFIX_SIZE : at + MAGIC_AT], "big")
    computed = zlib.crc32(memoryview(data)[at + MAGIC_AT : at + size])
    if stored != computed:
        raise CorruptRecordError(
            f"the message has CRC {stored:#010x}, computed is {computed:#010x}"
        )
    return None


def _next_entry(file: LogFile, position: int, end: int, base_offset: int, size: int | None) -> int:
    """Return the position of the next valid entry after a damaged one, or the end."""
    if size is not None:
        # Only the contents are damaged, if the size leads to another entry.
        after = position + size
        if after == end or (after < end and entry_at(file, after, end)):
            return after
    for found in possible_entries(file.read, position + 1, end, base_offset):
        if entry_at(file, found, end):
            return found
    return end
