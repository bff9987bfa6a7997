"""The formats before batches, magic 0 and 1: read, converted to magic 2, and converted back.

    offset int64 | size int32 | crc uint32 (CRC-32 of what follows) | magic int8 | attributes int8
    | timestamp int64, magic 1 only | keyLength int32 | key | valueLength int32 | value

Compressed messages are a message set in the value of one wrapper. Offsets inside are absolute in
magic 0; in magic 1 they are relative, and the wrapper has the offset of the last. Only one level is
allowed: a wrapper inside a wrapper is rejected, so that nesting cannot multiply what a few bytes
unpack to. Malformed bytes raise CorruptRecordError.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from barnabas.kernels import NO_TIMESTAMP, Buffer, Record
from barnabas.kernels.batch_header import SIZE_MAX
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptRecordError, RequestError
from barnabas.records.batch import BatchHeader, read_batch
from barnabas.records.bounds import READING, RECORD_MAX, Bounds, whole_too_large
from barnabas.records.builder import build_batch
from barnabas.records.compression import Codec, TooLargeError, decompress
from barnabas.records.message_set import scan_entries

_PREFIX = struct.Struct(">qi")  # offset and size
_START = struct.Struct(">Ibb")  # crc, magic and attributes
_CODEC_MASK = 0x07
_APPEND_TIME_BIT = 0x08


class _Message(NamedTuple):
    """One entry of a message set, as stored."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: memoryview | None


def iterate_messages(buffer: Buffer, *, limit: int = RECORD_MAX) -> Iterator[Record]:
    """Yield the messages of a set, including those inside wrappers; an incomplete one at the end is
    ignored.

    `limit` bounds what all wrappers together may decompress to.
    """
    for message in _entries(memoryview(buffer), whole=False):
        if not message.attributes & _CODEC_MASK:
            yield _record(message, message.offset, message.timestamp)
            continue
        content = _unwrap(message, limit)
        limit -= len(content)
        yield from _inner_records(message, memoryview(content))


def up_convert(
    buffer: Buffer, *, limit: int = RECORD_MAX, codec: Codec | int | str | None = None
) -> bytes:
    """Return all messages of a set as one batch of magic 2, as a producer would have sent it.

    Without `codec` the last wrapper's is kept. Offsets start at 0, for the leader to assign.
    """
    if codec is None:
        codec = Codec.NONE
        for message in _entries(memoryview(buffer), whole=False):
            codec = Codec.of(message.attributes & _CODEC_MASK) or codec
    records = iterate_messages(buffer, limit=limit)
    first = next(records, None)
    if first is None:
        raise CorruptRecordError("empty message set", ErrorCode.INVALID_RECORD)
    return build_batch(chain((first,), records), codec)


def down_convert(
    buffer: Buffer,
    magic: int,
    *,
    from_offset: int = 0,
    size_max: int = SIZE_MAX,
    bounds: Bounds = READING,
) -> bytearray:
    """Return entries of any format as messages that a reader of `magic` (0 or 1) knows.

    What is stored in its format, or in an older one, is given as it is. Batches of magic 2 come
    uncompressed: headers, control batches and records below `from_offset` are left out. It ends
    with the message that makes it `size_max` bytes or more. An empty result for whole batches means
    that nothing was left: a fetch must then continue after them, because an old consumer advances
    only by the messages it gets. zstd is rejected, as such consumers expect.
    """
    assert magic in (0, 1), f"magic {magic} is not an old format"
    out = bytearray()
    position = 0
    for header in scan_entries(buffer):
        entry = memoryview(buffer)[position : position + header.size]
        position += header.size
        if header.magic <= magic:
            out += entry
        elif not header.is_control:
            attributes = _APPEND_TIME_BIT if magic == 1 and header.is_append_time else 0
            for record in _records_of(entry, header, magic, bounds):
                if record.offset >= from_offset:
                    _add_message(out, record, magic, attributes)
                    if len(out) >= size_max:
                        return out
        if len(out) >= size_max:
            break
    return out


def _records_of(entry: Buffer, header: BatchHeader, magic: int, bounds: Bounds) -> Iterable[Record]:
    """Return the records of one entry, which a reader of an older magic is to get."""
    if header.is_message:
        return iterate_messages(entry, limit=bounds.held_max(header.size))
    if header.codec is Codec.ZSTD:
        raise RequestError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"zstd records cannot be converted to messages of magic {magic}",
        )
    return read_batch(entry, header, 0, bounds)


def encode_message(record: Record, magic: int, attributes: int = 0) -> bytes:
    """Return one message with its offset, size and CRC; this format has no headers."""
    out = bytearray()
    _add_message(out, record, magic, attributes)
    return bytes(out)


def _add_message(out: bytearray, record: Record, magic: int, attributes: int) -> None:
    start = len(out)
    out += bytes(_PREFIX.size + 4)
    out += struct.pack(">bb", magic, attributes)
    if magic == 1:
        out += struct.pack(">q", record.timestamp)
    for field in (record.key, record.value):
        out += struct.pack(">i", -1 if field is None else len(field))
        out += field or b""
    body = start + _PREFIX.size + 4
    _PREFIX.pack_into(out, start, record.offset, len(out) - start - _PREFIX.size)
    with memoryview(out) as view:
        crc = zlib.crc32(view[body:])
    struct.pack_into(">I", out, start + _PREFIX.size, crc)


def _entries(data: memoryview, whole: bool) -> Iterator[_Message]:
    """Yield the entries of a set; `whole` says that a cut one is damage."""
    position = 0
    while position < len(data):
        start = position + _PREFIX.size
        offset, size = _PREFIX.unpack_from(data, position) if start <= len(data) else (0, 0)
        position = start + size
        if start > len(data) or position > len(data):
            if whole:
                raise CorruptRecordError("message inside a compressed message is truncated")
            return
        if size < _START.size:
            raise CorruptRecordError(f"a message of {size} bytes is smaller than its fixed fields")
        yield _message(offset, data[start:position])


def _message(offset: int, data: memoryview) -> _Message:
    """Read one whole message, from its CRC on."""
    crc, magic, attributes = _START.unpack_from(data)
    if magic not in (0, 1):
        raise CorruptRecordError(
            f"magic {magic} in a message set, must be 0 or 1", ErrorCode.INVALID_RECORD
        )
    computed = zlib.crc32(data[4:])
    if computed != crc:
        raise CorruptRecordError(f"message has CRC {crc:#010x}, computed {computed:#010x}")
    position = _START.size
    timestamp = NO_TIMESTAMP
    if magic == 1:
        if len(data) < position + 8:
            raise _wrong_length()
        (timestamp,) = struct.unpack_from(">q", data, position)
        position += 8
    key, position = _field(data, position)
    value, position = _field(data, position)
    if position != len(data):
        raise _wrong_length()
    key_bytes = None if key is None else bytes(key)
    return _Message(offset, magic, attributes, timestamp, key_bytes, value)


def _field(data: memoryview, position: int) -> tuple[memoryview | None, int]:
    """Return the bytes announced at position (or None for null) and the position after them."""
    start = position + 4
    if start > len(data):
        raise _wrong_length()
    (size,) = struct.unpack_from(">i", data, position)
    if size == -1:
        return None, start
    if not 0 <= size <= len(data) - start:
        raise _wrong_length()
    return data[start : start + size], start + size


def _unwrap(wrapper: _Message, limit: int) -> bytes:
    codec = Codec.of(wrapper.attributes & _CODEC_MASK)
    if codec is Codec.ZSTD:
        raise CorruptRecordError(
            f"zstd in a message of magic {wrapper.magic}", ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        )
    if wrapper.value is None:
        raise CorruptRecordError("compressed message without a value")
    try:
        return decompress(codec, wrapper.value, limit, old_lz4_checksum=wrapper.magic == 0)
    except TooLargeError:
        why = f"it is a message of magic {wrapper.magic}"
        raise whole_too_large(limit, why) from None


def _inner_records(wrapper: _Message, content: memoryview) -> Iterator[Record]:
    if not content:
        raise CorruptRecordError("compressed message without inner messages")
    base = 0
    if wrapper.magic == 1 and wrapper.offset != 0:  # some producers leave the wrapper's offset 0
        base = wrapper.offset - _last_offset(content)
    for message in _entries(content, whole=True):
        if message.attributes & _CODEC_MASK:
            raise CorruptRecordError("compressed message inside a compressed message")
        if message.magic != wrapper.magic:
            raise CorruptRecordError(
                f"a message of magic {message.magic} inside one of magic {wrapper.magic}"
            )
        stamped = wrapper.attributes & _APPEND_TIME_BIT and wrapper.magic == 1
        timestamp = wrapper.timestamp if stamped else message.timestamp
        yield _record(message, base + message.offset, timestamp)


def _last_offset(content: memoryview) -> int:
    """Return the offset of the last message; those before it are not kept to find it."""
    position = offset = 0
    while position + _PREFIX.size <= len(content):
        offset, size = _PREFIX.unpack_from(content, position)
        position += _PREFIX.size + max(size, 0)
    return offset


def _record(message: _Message, offset: int, timestamp: int) -> Record:
    if not -(2**63) <= offset < 2**63:
        raise CorruptRecordError(f"offset {offset} is not a 64-bit number")
    value = None if message.value is None else bytes(message.value)
    return Record(offset, timestamp, message.key, value)


def _wrong_length() -> CorruptRecordError:
    return CorruptRecordError("the fields of a message do not add up to its size")
