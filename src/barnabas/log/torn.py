"""What a crash can leave behind the last whole batch of a segment, told from what it cannot.

A crash takes bytes away that were not flushed. The file ends early, so that its last batch is cut;
or blocks never reached the disk and read as zeros, where a batch should begin or inside of one.
That is a torn tail, which recovery cuts. Everything else (another format, bytes that begin no
batch, a good batch in the wrong place, a wrong CRC with good batches behind it) was not done by a
crash: it may be somebody's records, and is left alone. What else a crash could leave, the rest of
a failed write or of a truncation, is flushed away before anything is written in its place.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator

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
from barnabas.log.offset_index import OFFSET_SPAN_MAX
from barnabas.model.errors import CorruptRecordError
from barnabas.records.message_set import check_message

SECTOR_BYTES = 512
"""What a disk writes wholly or not at all: the least that a crash can leave as zeros."""

_CHUNK_BYTES = 1024 * 1024
_START = MAGIC_AT + 1


def is_zero(file: File, position: int, end: int) -> bool:
    """Return whether only zeros follow: a file that was given its size before it was filled."""
    return not any(data.strip(b"\0") for _, data in _chunks(file, position, end))


def contradiction(
    file: File, position: int, end: int, next_offset: int, *, followed: bool
) -> str | None:
    """Return what shows that no crash left these bytes; None for a torn tail.

    They are not flushed, and lie between `position`, where the walk over the batches stopped in
    front of `next_offset`, and the end of the file; `followed` says that later segments hold
    batches.
    """
    head = file.pread(min(HEADER_SIZE, end - position), position)
    if len(head) < _START or not head.strip(b"\0"):
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
        return f"magic {magic} is no format that this release knows"
    if not known:
        return f"the bytes {head[:_START].hex()} begin no batch"
    whole = size <= end - position
    if not whole and end - position >= least and _is_complete(file, position, end, head):
        return f"a batch that says {size} bytes is complete with {end - position}"
    if whole and _batch_at(file, position, end) is not None:
        return f"a whole batch of offset {offset}"
    if whole and followed:
        return "later segments hold batches"
    after = _find_batch(file, position + (size if whole else 1), end, next_offset)
    return None if after is None else f"a whole batch follows at {after}"


def _is_complete(file: File, position: int, end: int, head: bytes) -> bool:
    """Return whether the CRC of an unfinished batch is that of the bytes which are there."""
    add: Callable[[bytes, int], int]
    if head[MAGIC_AT] == BATCH_MAGIC:
        crc_at, covered, add = CRC_AT, ATTRIBUTES_AT, crc32c
    else:
        crc_at, covered, add = MESSAGE_CRC_AT, MAGIC_AT, zlib.crc32
    value = 0
    for _, data in _chunks(file, position + covered, end):
        value = add(data, value)
    return value == int.from_bytes(head[crc_at : crc_at + 4], "big")


def _has_hole(file: File, start: int, stop: int, end: int) -> bool:
    """Return whether a sector that begins in [start, stop) reads as zeros."""
    first = -(-start // SECTOR_BYTES) * SECTOR_BYTES
    if first >= stop:
        return False
    last = min(-(-stop // SECTOR_BYTES) * SECTOR_BYTES, end)
    for position, data in _chunks(file, first, last):
        for at in range(0, len(data), SECTOR_BYTES):
            sector = data[at : at + SECTOR_BYTES]
            if not sector.strip(b"\0") and (
                len(sector) == SECTOR_BYTES or position + at + len(sector) == end
            ):
                return True
    return False


def _find_batch(file: File, position: int, end: int, next_offset: int) -> int | None:
    """Return where the first whole batch of a later offset begins, if there is any."""
    high = next_offset >> 32
    prefixes = b"|".join(re.escape(each.to_bytes(4, "big")) for each in (high, high + 1))
    # Offset, a size that is not 0, four bytes, a magic; found at overlapping places, too.
    pattern = re.compile(
        rb"(?=(?:" + prefixes + rb").{4}(?!\0{4})[\0-\x7f].{3}.{4}[\0-\x02])", re.DOTALL
    )
    while end - position >= _START:
        data = file.pread(min(_CHUNK_BYTES, end - position), position)
        if len(data) < _START:
            return None
        for found in pattern.finditer(data):
            header = _batch_at(file, position + found.start(), end)
            if header is not None and header.last_offset >= next_offset:
                return position + found.start()
        position += len(data) - _START + 1
    return None


def _batch_at(file: File, position: int, end: int) -> BatchHeader | None:
    """Return the header of the batch at a position; None if there is no whole and good one."""
    head = file.pread(_START, position)
    size = size_at(head)
    if not MESSAGE_MIN <= size <= end - position:
        return None
    data = file.pread(size, position)
    try:
        return check_batch(data) if head[MAGIC_AT] == BATCH_MAGIC else check_message(data)
    except CorruptRecordError:
        return None


def _chunks(file: File, position: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield (position, bytes) of a stretch, piece by piece; the pieces are multiples of sectors."""
    while position < end:
        data = file.pread(min(_CHUNK_BYTES, end - position), position)
        if not data:
            return
        yield position, data
        position += len(data)
