"""Entries of the formats before batches (magic 0 and 1) as a log handles them: scanned and checked.

The layout is drawn in `legacy.py`. An entry, a message or a wrapper of compressed ones, has the
header fields that a batch of magic 2 would have: leader epoch and producer are -1, the attributes
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
    Buffer,
    HeaderFields,
    scan_batch,
)
from barnabas.kernels.contract import PREFIX_SIZE, cut_batch
from barnabas.model.errors import CorruptRecordError

MAGIC_AT = 16
"""Where every format has its magic."""

OLDEST_BATCH = 2
"""The first magic of batches; entries of message sets are below."""

MESSAGE_MIN = 26
"""Bytes of the smallest entry, which is also how many of one must be seen to describe it."""

UNKNOWN_COUNT = -1
"""Of the messages in a wrapper, which is not unpacked."""

_HEAD = struct.Struct(">qiIbb")  # offset, size, crc, magic, attributes
_TIMESTAMP = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_SIZE_MIN = (26, 34)  # by magic


def is_message(buffer: Buffer, position: int = 0) -> bool:
    """Return whether an entry of magic 0 or 1 begins at position, if one begins there."""
    at = position + MAGIC_AT
    return at < len(buffer) and buffer[at] < OLDEST_BATCH


def scan_message(buffer: Buffer, position: int = 0, end: int = -1) -> HeaderFields:
    """Return the header fields of the entry at position; the rest of it need not be there."""
    available = (len(buffer) if end == -1 else end) - position
    if available < MESSAGE_MIN:
        raise CorruptRecordError(
            f"a message takes at least {MESSAGE_MIN} bytes, only {available} are there"
        )
    offset, length, crc, magic, attributes = _HEAD.unpack_from(buffer, position)
    if magic not in (0, 1):
        raise CorruptRecordError(f"magic {magic} where a message of magic 0 or 1 was expected")
    size = length + PREFIX_SIZE
    if size < _SIZE_MIN[magic]:
        raise CorruptRecordError(
            f"a message of {size} bytes is smaller than its fixed fields ({_SIZE_MIN[magic]})"
        )
    timestamp = NO_TIMESTAMP
    attributes &= CODEC_MASK
    if magic:
        attributes |= buffer[position + MAGIC_AT + 1] & APPEND_TIME_BIT
        (timestamp,) = _TIMESTAMP.unpack_from(buffer, position + _HEAD.size)
    count = UNKNOWN_COUNT if attributes & CODEC_MASK else 1
    return (offset, size, -1, magic, crc, attributes, 0, timestamp, timestamp, -1, -1, -1, count)


def check_message(buffer: Buffer, position: int = 0, end: int = -1) -> HeaderFields:
    """Return the header fields of a whole entry whose CRC and lengths are right."""
    available = (len(buffer) if end == -1 else end) - position
    fields = scan_message(buffer, position, position + available)
    size = fields[1]
    if size > available:
        raise cut_batch(size, available)
    computed = zlib.crc32(memoryview(buffer)[position + MAGIC_AT : position + size])
    if computed != fields[4]:
        raise CorruptRecordError(
            f"the message says CRC {fields[4]:#010x}, its bytes have {computed:#010x}"
        )
    at, stop = position + (_HEAD.size, _HEAD.size + _TIMESTAMP.size)[fields[3]], position + size
    for _ in ("key", "value"):
        (length,) = _LENGTH.unpack_from(buffer, at) if stop - at >= 4 else (stop,)
        at += 4 + max(length, 0)
        if length < -1 or at > stop:
            raise CorruptRecordError("the fields of a message do not add up to its size")
    if at != stop:
        raise CorruptRecordError("the fields of a message do not add up to its size")
    return fields


def starting_at(fields: HeaderFields, base_offset: int) -> HeaderFields:
    """Return the fields of an entry with another base offset, which may lie behind its end."""
    last_offset = fields[0] + fields[6]
    base_offset = min(base_offset, last_offset)
    return (base_offset, *fields[1:6], last_offset - base_offset, *fields[7:])


def scan_entries(buffer: Buffer) -> list[HeaderFields]:
    """Return the header fields of every whole entry, of all formats; a cut one is left out."""
    found: list[HeaderFields] = []
    position, end = 0, len(buffer)
    while end - position >= MESSAGE_MIN:
        if is_message(buffer, position):
            fields = scan_message(buffer, position, end)
            if found and fields[5] & CODEC_MASK:
                fields = starting_at(fields, found[-1][0] + found[-1][6] + 1)
        elif end - position < HEADER_SIZE:
            break
        else:
            fields = scan_batch(buffer, position, end)
        if fields[1] > end - position:
            break
        found.append(fields)
        position += fields[1]
    return found
