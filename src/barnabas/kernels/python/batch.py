"""Record batches of magic 2 as a broker handles them: scan, check, validate, patch.

The layout is drawn in `kernels/batch_header.py`. Base offset and leader epoch are outside the CRC,
so a leader assigns offsets without computing it again.
"""

from __future__ import annotations

import struct

from barnabas.kernels.batch_header import (
    APPEND_TIME_BIT,
    ATTRIBUTES_AT,
    BASE_OFFSET_AT,
    BATCH_MAGIC,
    CODEC_MASK,
    CRC_AT,
    HEADER_FORMAT,
    HEADER_SIZE,
    LEADER_EPOCH_AT,
    LENGTH_AT,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    PREFIX_SIZE,
    PRODUCER_ID_AT,
    TRANSACTIONAL_BIT,
    BatchHeader,
)
from barnabas.kernels.contract import (
    NO_TIMESTAMP,
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
    Buffer,
    Fault,
    Faults,
    MutableBuffer,
    cut_batch,
    cut_header,
    wrong_counts,
    wrong_crc,
    wrong_magic,
    wrong_range,
    wrong_size,
)
from barnabas.kernels.python.crc32c import crc32c
from barnabas.kernels.python.layout import RecordFault, read_layout, wrap64
from barnabas.kernels.python.varint import decode_varint
from barnabas.model.errors import CorruptRecordError

_read_header = struct.Struct(HEADER_FORMAT).unpack_from
_LENGTH_TO_MAGIC = struct.Struct(">iib")


def scan_batch(buffer: Buffer, position: int = 0, end: int = -1) -> BatchHeader:
    """Return the header at position; the rest of the batch need not be there."""
    if end == -1:
        end = len(buffer)
    if not HEADER_SIZE <= position + HEADER_SIZE <= end <= len(buffer):
        raise cut_header(_end(buffer, position, end) - position)
    header = BatchHeader(*_read_header(buffer, position))  # with the length as its size
    if header.magic != BATCH_MAGIC:
        raise wrong_magic(header.magic)
    header.size = size = header.size + PREFIX_SIZE  # type: ignore[misc]  # nobody has seen it yet
    if size < HEADER_SIZE:
        raise wrong_size(size)
    return header


def scan_batches(buffer: Buffer, position: int = 0, end: int = -1) -> list[BatchHeader]:
    """Return the header of every whole batch; an incomplete one at the end is skipped. So is what
    follows a batch from an entry of an older format (magic 0 or 1) on.
    """
    end = _end(buffer, position, end)
    found: list[BatchHeader] = []
    while end - position >= HEADER_SIZE:
        if found and buffer[position + MAGIC_AT] < BATCH_MAGIC:
            break
        header = scan_batch(buffer, position, end)
        if header.size > end - position:
            break
        found.append(header)
        position += header.size
    return found


def check_batch(buffer: Buffer, position: int = 0, end: int = -1) -> BatchHeader:
    """Return the header of a whole batch whose CRC and counts are right."""
    end = _end(buffer, position, end)
    header = scan_batch(buffer, position, end)
    size = header.size
    if size > end - position:
        raise cut_batch(size, end - position)
    computed = crc32c(memoryview(buffer)[position + ATTRIBUTES_AT : position + size])
    if computed != header.crc:
        raise wrong_crc(header.crc, computed)
    # Compaction may leave fewer records than offsets (even none), never more.
    if not 0 <= header.count <= header.last_offset_delta + 1:
        raise wrong_counts(header.count, header.last_offset_delta)
    return header


def inspect_batch(
    buffer: Buffer,
    position: int = 0,
    end: int = -1,
    timestamp_min: int = TIMESTAMP_MIN,
    timestamp_max: int = TIMESTAMP_MAX,
    require_key: bool = False,
) -> tuple[BatchHeader, int, int, Faults]:
    """Check a produced batch in one call: header, CRC and, if it is not compressed, every record.

    Returns the header and what `validate_records` returns. The records of a compressed batch are
    not checked: its max timestamp is the header's and its offset delta -1.
    """
    header = check_batch(buffer, position, end)
    if header.attributes & CODEC_MASK:
        return header, header.max_timestamp, -1, ()
    walked = validate_records(
        buffer,
        position + HEADER_SIZE,
        position + header.size,
        header.count,
        header.base_timestamp,
        timestamp_min=timestamp_min,
        timestamp_max=timestamp_max,
        require_key=require_key,
    )
    return (header, *walked)


def validate_records(
    buffer: Buffer,
    start: int,
    end: int,
    count: int,
    base_timestamp: int,
    timestamp_min: int = TIMESTAMP_MIN,
    timestamp_max: int = TIMESTAMP_MAX,
    require_key: bool = False,
    first: int = 0,
) -> tuple[int, int, Faults]:
    """Walk over uncompressed records and return (max timestamp, its first offset delta, faults).

    An unreadable record ends the walk; other faults are collected, one per record. A wrong offset
    delta is reported only if nothing else is wrong, because it can be corrected. Timestamp -1
    (none) is always inside the bounds. `first` is the index of the first record, where those before
    it were walked over already.
    """
    end = _end(buffer, start, end)
    faults: list[tuple[int, Fault]] = []
    greatest, offset_of_greatest = NO_TIMESTAMP, -1
    if count < 0:
        return greatest, offset_of_greatest, ((first, Fault.COUNT),)
    position = start
    for index in range(first, first + count):
        try:
            record = read_layout(buffer, position, end)
        except RecordFault as failure:
            faults.append((index, failure.fault))
            return greatest, offset_of_greatest, tuple(faults)
        position = record.end
        timestamp = wrap64(base_timestamp + record.timestamp_delta)
        if timestamp > greatest:
            greatest, offset_of_greatest = timestamp, record.offset_delta
        if require_key and record.key_length < 0:
            faults.append((index, Fault.KEY))
        elif timestamp != NO_TIMESTAMP and not timestamp_min <= timestamp <= timestamp_max:
            faults.append((index, Fault.TIMESTAMP))
        elif record.offset_delta != index:
            faults.append((index, Fault.OFFSET))
    if position != end:
        faults.append((first + count, Fault.LEFTOVER))
    return greatest, offset_of_greatest, tuple(faults)


def split_records(buffer: Buffer, start: int, end: int, count: int) -> tuple[int, int, int]:
    """Find the whole records at the start of some uncompressed ones, by their lengths alone.

    Returns how many there are (at most `count`), where they end, and how many bytes the next one
    takes: 0 where that cannot be seen yet or `count` is reached, -1 where its length is impossible.
    """
    end = _end(buffer, start, end)
    found, position = 0, start
    while found < count:
        try:
            length, body = decode_varint(memoryview(buffer)[: min(end, position + 5)], position)
        except CorruptRecordError:
            return found, position, 0 if end - position < 5 else -1
        if length < 0:
            return found, position, -1
        if length > end - body:
            return found, position, body - position + length
        found, position = found + 1, body + length
    return found, position, 0


def assign_offsets(
    buffer: MutableBuffer, position: int, base_offset: int, leader_epoch: int
) -> None:
    """Set the offsets and leader epoch of a batch in place; its CRC does not cover them."""
    _whole(buffer, position)
    struct.pack_into(">q", buffer, position + BASE_OFFSET_AT, base_offset)
    struct.pack_into(">i", buffer, position + LEADER_EPOCH_AT, leader_epoch)


def stamp_timestamp(
    buffer: MutableBuffer, position: int, append_time: bool, max_timestamp: int
) -> int:
    """Set timestamp type and max timestamp of a batch in place, and its CRC; return the CRC."""
    size = _whole(buffer, position)
    (attributes,) = struct.unpack_from(">h", buffer, position + ATTRIBUTES_AT)
    attributes = attributes | APPEND_TIME_BIT if append_time else attributes & ~APPEND_TIME_BIT
    struct.pack_into(">h", buffer, position + ATTRIBUTES_AT, attributes)
    struct.pack_into(">q", buffer, position + MAX_TIMESTAMP_AT, max_timestamp)
    return _seal(buffer, position, size)


def stamp_producer(
    buffer: MutableBuffer,
    position: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    transactional: bool = False,
) -> int:
    """Set the producer's identity and sequence of a batch in place, and its CRC; return the CRC."""
    size = _whole(buffer, position)
    (attributes,) = struct.unpack_from(">h", buffer, position + ATTRIBUTES_AT)
    attributes = attributes & ~TRANSACTIONAL_BIT | (TRANSACTIONAL_BIT if transactional else 0)
    struct.pack_into(">h", buffer, position + ATTRIBUTES_AT, attributes)
    producer = (producer_id, producer_epoch, base_sequence)
    struct.pack_into(">qhi", buffer, position + PRODUCER_ID_AT, *producer)
    return _seal(buffer, position, size)


def _seal(buffer: MutableBuffer, position: int, size: int) -> int:
    crc = crc32c(memoryview(buffer)[position + ATTRIBUTES_AT : position + size])
    struct.pack_into(">I", buffer, position + CRC_AT, crc)
    return crc


def _whole(buffer: Buffer, position: int) -> int:
    """Return the size of the batch at position, all of which must be there."""
    end = _end(buffer, position, -1)
    if end - position < HEADER_SIZE:
        raise cut_header(end - position)
    length, _, magic = _LENGTH_TO_MAGIC.unpack_from(buffer, position + LENGTH_AT)
    size = _checked_size(length, magic)
    if size > len(buffer) - position:
        raise cut_batch(size, len(buffer) - position)
    return size


def _checked_size(length: int, magic: int) -> int:
    """Return the size of a batch by its length field, if its header can be one."""
    if magic != BATCH_MAGIC:
        raise wrong_magic(magic)
    if length + PREFIX_SIZE < HEADER_SIZE:
        raise wrong_size(length + PREFIX_SIZE)
    return length + PREFIX_SIZE


def _end(buffer: Buffer, position: int, end: int) -> int:
    """Return where to stop: `end`, or the buffer's end for -1."""
    if end == -1:
        end = len(buffer)
    if not 0 <= position <= end <= len(buffer):
        raise wrong_range(position, end, len(buffer))
    return end
