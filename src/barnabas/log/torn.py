"""What a crash can leave behind the last whole batch of a segment, and what it cannot.

A crash takes bytes away that were not flushed. The file ends early, so that its last batch is cut;
or blocks never reached the disk and read as zeros, where a batch should begin or inside of one.
That is a torn tail, which recovery cuts. Everything else (another format, bytes that begin no
batch, a good batch at the wrong position, a wrong CRC with good batches after it) was not done by
a crash: it may be records, and stays as it is. What else a crash could leave, the rest of a failed
write or of a truncation, is flushed away before anything is written in its place.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

from barnabas.kernels import check_batch, crc32c
from barnabas.kernels.batch_header import (
    ATTRIBUTES_AT,
    BATCH_MAGIC,
    CRC_AT,
    HEADER_SIZE,
    MAGIC_AT,
    MESSAGE_CRC_AT,
    MESSAGE_MIN,
    BatchHeader,
    offset_at,
    size_at,
)
from barnabas.log.files import File
from barnabas.log.scan import headers
from barnabas.model.errors import CorruptRecordError
from barnabas.records.entry_search import START_SIZE, chunks, possible_entries
from barnabas.records.message_set import check_message
from barnabas.records.offset_index import OFFSET_SPAN_MAX

SECTOR_BYTES = 512
"""What a disk writes wholly or not at all: the least that a crash can leave as zeros."""


def contradiction(
    file: File, position: int, end: int, next_offset: int, *, followed: bool
) -> str | None:
    """Return what shows that no crash left these bytes; None for a torn tail.

    They are not flushed, and lie between `position`, where the walk over the batches stopped in
    front of `next_offset`, and the end of the file; `followed` says that later segments hold
    batches.
    """
    head = file.pread(min(HEADER_SIZE, end - position), position)
    if len(head) < START_SIZE or not head.strip(b"\0"):
        return None
    magic = head[MAGIC_AT]
    size = size_at(head)
    offset = offset_at(head)
    least = HEADER_SIZE if magic == BATCH_MAGIC else MESSAGE_MIN
    known = magic <= BATCH_MAGIC and least <= size and 0 <= offset <= next_offset + OFFSET_SPAN_MAX
    reach = min(size, end - position) if known else len(head)
    if _has_hole(file, position, position + reach, end):
        return None
    if magic > BATCH_MAGIC:
        return f"magic {magic} is not supported, must be 0 to {BATCH_MAGIC}"
    if not known:
        return f"the bytes {head[:START_SIZE].hex()} are not the start of a batch"
    whole = size <= end - position
    if not whole and end - position >= least and _is_complete(file, position, end, head):
        return f"a batch that claims {size} bytes is complete with {end - position}"
    if whole and _batch_at(file, position, end) is not None:
        return f"a whole batch of offset {offset}"
    if whole and followed:
        return "later segments have batches"
    after = _find_batch(file, position + (size if whole else 1), end, next_offset)
    return None if after is None else f"a whole batch follows at {after}"


def is_thinned(file: File, end: int) -> bool:
    """Return whether offsets are missing between or in the batches of a file, as far as they go.

    Compaction takes them out, a crash does not.
    """
    next_offset: int | None = None
    try:
        for _, header in headers(file, 0, end):
            if next_offset not in (None, header.base_offset):
                return True
            if not header.is_message and header.count <= header.last_offset_delta:
                return True
            next_offset = header.next_offset
    except CorruptRecordError:
        return False  # torn there
    return False


def _is_complete(file: File, position: int, end: int, head: bytes) -> bool:
    """Return whether the CRC of an unfinished batch is that of the bytes which are there."""
    add: Callable[[bytes, int], int]
    if head[MAGIC_AT] == BATCH_MAGIC:
        crc_at, covered, add = CRC_AT, ATTRIBUTES_AT, crc32c
    else:
        crc_at, covered, add = MESSAGE_CRC_AT, MAGIC_AT, zlib.crc32
    value = 0
    for _, data in chunks(file.pread, position + covered, end):
        value = add(data, value)
    return value == int.from_bytes(head[crc_at : crc_at + 4], "big")


def _has_hole(file: File, start: int, stop: int, end: int) -> bool:
    """Return whether a sector that begins in [start, stop) reads as zeros."""
    first = -(-start // SECTOR_BYTES) * SECTOR_BYTES
    if first >= stop:
        return False
    last = min(-(-stop // SECTOR_BYTES) * SECTOR_BYTES, end)
    for position, data in chunks(file.pread, first, last):
        for at in range(0, len(data), SECTOR_BYTES):
            sector = data[at : at + SECTOR_BYTES]
            if not sector.strip(b"\0") and (
                len(sector) == SECTOR_BYTES or position + at + len(sector) == end
            ):
                return True
    return False


def _find_batch(file: File, position: int, end: int, next_offset: int) -> int | None:
    """Return where the first whole batch of a later offset begins, if there is any."""
    for found in possible_entries(file.pread, position, end, next_offset):
        header = _batch_at(file, found, end)
        if header is not None and header.last_offset >= next_offset:
            return found
    return None


def _batch_at(file: File, position: int, end: int) -> BatchHeader | None:
    """Return the header of the batch at a position; None if there is no whole and good one."""
    head = file.pread(START_SIZE, position)
    size = size_at(head)
    if not MESSAGE_MIN <= size <= end - position:
        return None
    data = file.pread(size, position)
    try:
        return check_batch(data) if head[MAGIC_AT] == BATCH_MAGIC else check_message(data)
    except CorruptRecordError:
        return None
