"""Record batches of magic 2: their headers, and the records inside.

A broker works on headers and leaves the records packed; `inspect` is its check of what a client
produced. A consumer iterates. Reading is lazy: records are decoded as they are asked for, and a
batch is decompressed when its first record is. Malformed bytes raise CorruptRecordError.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from barnabas.kernels import (
    APPEND_TIME_BIT,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_SIZE,
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
    TRANSACTIONAL_BIT,
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
from barnabas.records.bounds import READING, Bounds
from barnabas.records.chunks import unpack_chunks
from barnabas.records.compression import DEFAULT_LIMIT, Codec, decompress

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

_DELETE_HORIZON_BIT = 0x40
_MAGIC_AT = 16  # in every format


class BatchHeader(NamedTuple):
    """What stands in front of a batch's records; `size` is the whole batch in bytes."""

    base_offset: int
    size: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # records, as the format says; hides tuple.count

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, which wraps to 0 after 2³¹ - 1; -1 if there is none."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def codec(self) -> Codec:
        return Codec.of(self.attributes & CODEC_MASK)

    @property
    def is_append_time(self) -> bool:
        """Whether the broker's clock made the timestamps (LogAppendTime), not the producer's."""
        return self.attributes & APPEND_TIME_BIT != 0

    @property
    def timestamp_type(self) -> int:
        """0 for CreateTime, 1 for LogAppendTime."""
        return 1 if self.attributes & APPEND_TIME_BIT else 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop the tombstones and markers of this batch, if it was set."""
        return self.base_timestamp if self.attributes & _DELETE_HORIZON_BIT else None


class Inspection(NamedTuple):
    """What is known of a produced batch after every byte of it was looked at.

    `faults` names the records that cannot be accepted, with the reason; without faults the offset
    deltas count up from 0 and `max_timestamp` is what the records say, whatever the header claims.
    """

    header: BatchHeader
    max_timestamp: int
    offset_delta_of_max: int
    faults: Faults


def magic_of(buffer: Buffer, position: int = 0) -> int | None:
    """Return the format version of the records at position, or None if that byte is not there."""
    at = position + _MAGIC_AT
    return buffer[at] if at < len(buffer) else None


def read_header(buffer: Buffer, position: int = 0, end: int = -1) -> BatchHeader:
    """Return the header at position; the records after it need not be there."""
    return BatchHeader._make(scan_batch(buffer, position, end))


def read_headers(buffer: Buffer, position: int = 0, end: int = -1) -> list[BatchHeader]:
    """Return the header of every whole batch; a cut one at the end is left out."""
    return [BatchHeader._make(fields) for fields in scan_batches(buffer, position, end)]


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
    fields, max_timestamp, offset_delta, faults = inspect_batch(
        buffer, position, end, timestamp_min, timestamp_max, require_key
    )
    header = BatchHeader._make(fields)
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
    """Return the records of one whole batch, decoded one by one; the CRC is not looked at.

    Of a compressed batch a small part is held at a time.
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
    """Yield the records of all whole batches, one batch after another; a cut tail is ignored.

    Control batches (transaction markers) are passed over unless `control` asks for them.
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
