"""A batch that grows record by record: each is encoded immediately, and no object is kept for it.
Space for the header is reserved from the start and written by `finish`, which closes the builder
and returns its buffer. An append that fails does not change the batch.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence

from barnabas.kernels.batch_header import (
    ATTRIBUTES_AT,
    BATCH_MAGIC,
    CODEC_MASK,
    HEADER_SIZE,
    PREFIX_SIZE,
    SEALED_FORMAT,
    SIZE_MAX,
    UNSEALED_FORMAT,
)
from barnabas.kernels.contract import (
    NO_TIMESTAMP,
    Buffer,
    Column,
    Row,
    batch_finished,
    column_range,
    nothing_appended,
    record_too_large,
    wrong_offset_delta,
)
from barnabas.kernels.python.crc32c import crc32c
from barnabas.kernels.python.varint import encode_varint, encode_varlong

_SEALED = struct.Struct(SEALED_FORMAT)
_UNSEALED = struct.Struct(UNSEALED_FORMAT)
_DELTA_MAX = 2**31 - 1


class BatchBuilder:
    """Encode records into one batch of at most `limit` bytes before compression (0: no limit)."""

    def __init__(self, limit: int = 0) -> None:
        self._limit = min(limit, SIZE_MAX) if limit > 0 else SIZE_MAX
        self._buffer: bytearray | None = bytearray(HEADER_SIZE)
        self._last_offset_delta = -1
        self.count = 0
        self.base_timestamp = NO_TIMESTAMP
        self.max_timestamp = NO_TIMESTAMP

    @property
    def size(self) -> int:
        """Bytes of the batch so far, before compression; 0 when it was finished."""
        return 0 if self._buffer is None else len(self._buffer)

    def append(
        self,
        timestamp: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Iterable[tuple[str, Buffer | None]] = (),
        offset_delta: int = -1,
    ) -> int:
        """Add a record and return its offset delta, or -1 if it no longer fits.

        The first record is always accepted, however large. `offset_delta` leaves a gap, as
        compaction does.
        """
        buffer = self._buffer
        if buffer is None:
            raise batch_finished()
        if offset_delta == -1:
            offset_delta = self._last_offset_delta + 1
        if not self._last_offset_delta < offset_delta <= _DELTA_MAX:
            raise wrong_offset_delta(offset_delta, self._last_offset_delta)
        base_timestamp = self.base_timestamp if self.count else timestamp
        record = encode_record(timestamp, base_timestamp, offset_delta, key, value, tuple(headers))
        size = len(buffer) + len(record)
        if size > (self._limit if self.count else SIZE_MAX):
            if self.count == 0:
                raise record_too_large(size)
            return -1
        buffer += record
        self.base_timestamp = base_timestamp
        self.max_timestamp = max(self.max_timestamp, timestamp)
        self._last_offset_delta = offset_delta
        self.count += 1
        return offset_delta

    def append_many(self, rows: Sequence[Row], start: int = 0) -> int:
        """Add rows (timestamp, key, value[, headers]) from `start` on; return how many fit."""
        for index in range(start, len(rows)):
            if self.append(*rows[index][:4]) < 0:
                return index - start
        return max(len(rows) - start, 0)

    def append_columns(
        self,
        timestamps: Buffer | None,
        keys: Column | None,
        values: Column | None,
        start: int,
        stop: int,
        timestamp: int = NO_TIMESTAMP,
    ) -> int:
        """Add the rows start..stop of Arrow's buffers; return how many were taken.

        `timestamps` holds int64 values, or is None and every record has `timestamp`. A column is
        validity bits (None: all valid), int32 offsets and data; a missing column is all null.
        """
        if start < 0:
            raise column_range()
        times = None if timestamps is None else memoryview(timestamps).cast("B").cast("q")
        if times is not None and stop > len(times):
            raise column_range()
        for index in range(start, stop):
            taken = self.append(
                timestamp if times is None else times[index],
                None if keys is None else read_cell(keys, index),
                None if values is None else read_cell(values, index),
            )
            if taken < 0:
                return index - start
        return max(stop - start, 0)

    def finish(
        self,
        *,
        codec: int = 0,
        compress: Callable[[memoryview], Buffer] | None = None,
        base_offset: int = 0,
        leader_epoch: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        attributes: int = 0,
        last_offset_delta: int = -1,
    ) -> bytearray:
        """Return the finished batch; the builder is empty and closed afterwards.

        With `codec` the records are compressed by `compress`. A
        `last_offset_delta` above the last record's is for compaction, which keeps a batch's range
        of offsets.
        """
        buffer = self._buffer
        if buffer is None:
            raise batch_finished()
        last_offset_delta = max(last_offset_delta, self._last_offset_delta)
        if last_offset_delta < 0:
            raise nothing_appended()
        if codec and compress is not None:
            with memoryview(buffer) as view:
                packed = compress(view[HEADER_SIZE:])
            if HEADER_SIZE + len(packed) > SIZE_MAX:
                raise record_too_large(HEADER_SIZE + len(packed))
            buffer[HEADER_SIZE:] = packed
        _SEALED.pack_into(
            buffer,
            ATTRIBUTES_AT,
            attributes & ~CODEC_MASK | codec,
            last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            self.count,
        )
        crc = crc32c(memoryview(buffer)[ATTRIBUTES_AT:])
        length = len(buffer) - PREFIX_SIZE
        _UNSEALED.pack_into(buffer, 0, base_offset, length, leader_epoch, BATCH_MAGIC, crc)
        self._buffer = None
        return buffer


def encode_record(
    timestamp: int,
    base_timestamp: int,
    offset_delta: int,
    key: Buffer | None,
    value: Buffer | None,
    headers: Sequence[tuple[str, Buffer | None]],
) -> bytes:
    """Return a record as encoded in a batch."""
    body = bytearray(b"\0")
    body += _timestamp_delta(timestamp, base_timestamp)
    body += encode_varint(offset_delta)
    _put_field(body, key)
    _put_field(body, value)
    body += encode_varint(len(headers))
    for name, content in headers:
        _put_field(body, name.encode("utf-8"))
        _put_field(body, content)
    return encode_varint(len(body)) + bytes(body)


def _timestamp_delta(timestamp: int, base_timestamp: int) -> bytes:
    if not -(1 << 63) <= timestamp < 1 << 63:
        raise OverflowError(f"timestamp {timestamp} is not a 64-bit number")
    delta = timestamp - base_timestamp & 0xFFFFFFFFFFFFFFFF
    return encode_varlong(delta - (1 << 64) if delta >> 63 else delta)


def _put_field(out: bytearray, field: Buffer | None) -> None:
    if field is None:
        out += b"\x01"
    else:
        field = memoryview(field)
        out += encode_varint(field.nbytes)
        out += field


def read_cell(column: Column, index: int) -> memoryview | None:
    """Return the cell of a row of Arrow's buffers; None if it is null."""
    validity, offsets, data = column
    if validity is not None:
        if index >= 8 * len(validity):
            raise column_range()
        if not validity[index >> 3] >> (index & 7) & 1:
            return None
    positions = memoryview(offsets).cast("B").cast("i")
    if index + 1 >= len(positions):
        raise column_range()
    start, stop = positions[index], positions[index + 1]
    if not 0 <= start <= stop <= len(data):
        raise column_range()
    return memoryview(data)[start:stop]
