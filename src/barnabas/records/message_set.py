"""Entries of the formats before batches (magic 0 and 1) as a log handles them: scanned and checked.

The layout is drawn in `legacy.py`. An entry, a message or a wrapper of compressed ones, has the
header that a batch of magic 2 would have: leader epoch and producer are -1, the attributes
are those bits that both formats share. The offset of an entry is that of its last message. Where a
wrapper begins is known only when it is unpacked, so its base offset is a lower bound at best: the
offset after the entry before it, and its own offset where nothing is before it.
"""

from __future__ import annotations

import struct
import zlib

from barnabas.kernels import (
    APPEND_TIME_BIT,
    CODEC_MASK,
    HEADER_SIZE,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    scan_batch,
)
from barnabas.kernels.batch_header import (
    BATCH_MAGIC,
    MAGIC_AT,
    MESSAGE_ATTRIBUTES_AT,
    MESSAGE_FORMAT,
    MESSAGE_MIN,
    MESSAGE_TIMESTAMP_AT,
    PREFIX_SIZE,
)
from barnabas.kernels.contract import cut_batch
from barnabas.model.errors import CorruptRecordError

UNKNOWN_COUNT = -1
"""Of the messages in a wrapper, which is not unpacked."""

_HEAD = struct.Struct(MESSAGE_FORMAT)
_TIMESTAMP = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_SIZE_MIN = (26, 34)  # by magic


def is_message(buffer: Buffer, position: int = 0) -> bool:
    """Return whether an entry of magic 0 or 1 begins at position, if one begins there."""
    at = position + MAGIC_AT
    return at < len(buffer) and buffer[at] < BATCH_MAGIC


def scan_message(buffer: Buffer, position: int = 0, end: int = -1) -> BatchHeader:
    """Return the header of the entry at position; the rest of it need not be there."""
    available = (len(buffer) if end == -1 else end) - position
    if available < MESSAGE_MIN:
        raise CorruptRecordError(f"message of {available} bytes, must have at least {MESSAGE_MIN}")
    offset, length, crc, magic, attributes = _HEAD.unpack_from(buffer, position)
    if magic not in (0, 1):
        raise CorruptRecordError(f"magic {magic} in a message, must be 0 or 1")
    size = length + PREFIX_SIZE
    if size < _SIZE_MIN[magic]:
        raise CorruptRecordError(
            f"a message of {size} bytes is smaller than its fixed fields ({_SIZE_MIN[magic]})"
        )
    timestamp = NO_TIMESTAMP
    attributes &= CODEC_MASK
    if magic:
        attributes |= buffer[position + MESSAGE_ATTRIBUTES_AT] & APPEND_TIME_BIT
        (timestamp,) = _TIMESTAMP.unpack_from(buffer, position + MESSAGE_TIMESTAMP_AT)
    count = UNKNOWN_COUNT if attributes & CODEC_MASK else 1
    return BatchHeader(
        base_offset=offset,
        size=size,
        leader_epoch=-1,
        magic=magic,
        crc=crc,
        attributes=attributes,
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        count=count,
    )


def check_message(buffer: Buffer, position: int = 0, end: int = -1) -> BatchHeader:
    """Return the header of a whole entry whose CRC and lengths are right."""
    available = (len(buffer) if end == -1 else end) - position
    header = scan_message(buffer, position, position + available)
    size = header.size
    if size > available:
        raise cut_batch(size, available)
    computed = zlib.crc32(memoryview(buffer)[position + MAGIC_AT : position + size])
    if computed != header.crc:
        raise CorruptRecordError(f"message has CRC {header.crc:#010x}, computed {computed:#010x}")
    at, stop = position + (_HEAD.size, _HEAD.size + _TIMESTAMP.size)[header.magic], position + size
    for _ in ("key", "value"):
        (length,) = _LENGTH.unpack_from(buffer, at) if stop - at >= 4 else (stop,)
        at += 4 + max(length, 0)
        if length < -1 or at > stop:
            raise CorruptRecordError("the fields of a message do not add up to its size")
    if at != stop:
        raise CorruptRecordError("the fields of a message do not add up to its size")
    return header


def scan_entries(buffer: Buffer) -> list[BatchHeader]:
    """Return the header of every whole entry, of all formats; a cut one is left out."""
    found: list[BatchHeader] = []
    position, end = 0, len(buffer)
    while end - position >= MESSAGE_MIN:
        if is_message(buffer, position):
            header = scan_message(buffer, position, end)
            if found and header.is_compressed:
                header = header.starting_at(found[-1].next_offset)
        elif end - position < HEADER_SIZE:
            break
        else:
            header = scan_batch(buffer, position, end)
        if header.size > end - position:
            break
        found.append(header)
        position += header.size
    return found
