"""Record batches of magic 2: their headers, and the records inside.

A broker works on headers and leaves the records compressed; `inspect` checks what a client
produced. A consumer iterates. Reading is lazy: records are decoded as they are asked for, and a
batch is decompressed when its first record is. Malformed bytes raise CorruptRecordError.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from barnabas.kernels import (
    CODEC_MASK,
    HEADER_SIZE,
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
    Buffer,
    Faults,
    MutableBuffer,
    Record,
    check_batch,
    inspect_batch,
    read_records,
    scan_batch,
    scan_batches,
    stamp_timestamp,
    validate_records,
)
from barnabas.kernels.batch_header import MAGIC_AT, BatchHeader, Codec
from barnabas.records.bounded_decompression import unpack_chunks
from barnabas.records.bounds import READING, Bounds
from barnabas.records.compression import DEFAULT_LIMIT, decompress

__all__ = [
    "BatchHeader",
    "Inspection",
    "Record",
    "inspect",
    "iterate",
    "magic_of",
    "read_batch",
    "read_header",
    "read_headers",
    "stamp_append_time",
    "stamp_create_time",
    "unpack",
]


class Inspection(NamedTuple):
    """The result of checking every byte of a produced batch.

    `faults` names the records that cannot be accepted, with the reason; without faults the offset
    deltas count up from 0 and `max_timestamp` is that of the records, whatever the header claims.
    """

    header: BatchHeader
    max_timestamp: int
    offset_delta_of_max: int
    faults: Faults


def magic_of(buffer: Buffer, position: int = 0) -> int | None:
    """Return the format version of the records at position, or None if that byte is not there."""
    at = position + MAGIC_AT
    return buffer[at] if at < len(buffer) else None


def read_header(buffer: Buffer, position: int = 0, end: int = -1) -> BatchHeader:
    """Return the header at position; the records after it need not be there."""
    return scan_batch(buffer, position, end)


def read_headers(buffer: Buffer, position: int = 0, end: int = -1) -> list[BatchHeader]:
    """Return the header of every whole batch; an incomplete one at the end is skipped."""
    return scan_batches(buffer, position, end)


def inspect(
    buffer: Buffer,
    position: int = 0,
    end: int = -1,
    *,
    timestamp_min: int = TIMESTAMP_MIN,
    timestamp_max: int = TIMESTAMP_MAX,
    require_key: bool = False,
    limit: int = DEFAULT_LIMIT,
) -> Inspection:
    """Check header, CRC and every record of the batch at position, decompressing if need be."""
    header, max_timestamp, offset_delta, faults = inspect_batch(
        buffer, position, end, timestamp_min, timestamp_max, require_key
    )
    if header.attributes & CODEC_MASK:
        records = unpack(buffer, header, position, limit)
        max_timestamp, offset_delta, faults = validate_records(
            records,
            0,
            len(records),
            header.count,
            header.base_timestamp,
            timestamp_min,
            timestamp_max,
            require_key,
        )
    return Inspection(header, max_timestamp, offset_delta, faults)


def unpack(
    buffer: Buffer, header: BatchHeader, position: int = 0, limit: int = DEFAULT_LIMIT
) -> bytes | memoryview:
    """Return the uncompressed bytes of a whole batch's records (a slice if they are stored so)."""
    packed = memoryview(buffer)[position + HEADER_SIZE : position + header.size]
    codec = header.codec
    return packed if codec is Codec.NONE else decompress(codec, packed, limit)


def read_batch(
    buffer: Buffer, header: BatchHeader, position: int = 0, bounds: Bounds = READING
) -> Iterator[Record]:
    """Return the records of one whole batch, decoded one by one; the CRC is not checked. Of a
    compressed batch, only a small part is in memory at a time.
    """
    append_time = header.max_timestamp if header.is_append_time else None
    base = header.base_offset, header.base_timestamp, append_time
    count = header.count
    if not header.attributes & CODEC_MASK:
        start, end = position + HEADER_SIZE, position + header.size
        return iter(read_records(buffer, start, end, count, *base))
    packed = memoryview(buffer)[position + HEADER_SIZE : position + header.size]
    records = unpack_chunks(header.attributes & CODEC_MASK, packed, count, bounds)
    if isinstance(records, bytes):
        return iter(read_records(records, 0, len(records), count, *base))
    return chain.from_iterable(
        read_records(chunk, 0, len(chunk), number, *base) for chunk, number in records
    )


def iterate(
    buffer: Buffer,
    *,
    check_crc: bool = True,
    control: bool = False,
    bounds: Bounds = READING,
) -> Iterator[Record]:
    """Yield the records of all whole batches, one batch after another; an incomplete one at the end
    is ignored.

    Control batches (transaction markers) are skipped unless `control` asks for them.
    """
    position = 0
    for header in read_headers(buffer):
        if check_crc:
            check_batch(buffer, position)
        if control or not header.is_control:
            yield from read_batch(buffer, header, position, bounds)
        position += header.size


def stamp_append_time(buffer: MutableBuffer, now_ms: int, position: int = 0) -> int:
    """Make the broker's time the timestamp of all records of a batch, in place; return the CRC."""
    return stamp_timestamp(buffer, position, True, now_ms)


def stamp_create_time(buffer: MutableBuffer, max_timestamp: int, position: int = 0) -> int:
    """Set a batch to the producer's timestamps with the right maximum, in place; return the CRC."""
    return stamp_timestamp(buffer, position, False, max_timestamp)
