"""Compaction of record batches: keys into a map of offsets, and batches through that map.

The map is one flat buffer of slots, open addressing with linear steps, from the slot that the first
half of the digest says, as a fraction of all:

    MD5 of the key, 16 bytes | offset + 1, int64 in the machine's order (0: the slot is free)

It belongs to the caller, who says how many new keys it may still take (`room`); a slot stays free
at all times, so that a search ends. Batches that are compressed, transactional or control are not
*plain*, nor are entries of older formats (magic 0 and 1): the kernels over many batches stop in
front of them, and the caller does those one by one.
"""

from __future__ import annotations

import struct
from hashlib import md5

from barnabas.kernels.batch_header import (
    APPEND_TIME_BIT,
    ATTRIBUTES_AT,
    BASE_TIMESTAMP_AT,
    BATCH_MAGIC,
    COUNT_AT,
    CRC_AT,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    LENGTH_AT,
    MAGIC_AT,
    PREFIX_SIZE,
    SPECIAL_MASK,
    BatchHeader,
)
from barnabas.kernels.contract import (
    NO_TIMESTAMP,
    SLOT_SIZE,
    Buffer,
    Fault,
    MutableBuffer,
    corrupt_record,
    wrong_range,
)
from barnabas.kernels.python.batch import check_batch, scan_batch
from barnabas.kernels.python.crc32c import crc32c
from barnabas.kernels.python.layout import Layout, RecordFault, read_layout, wrap64
from barnabas.kernels.python.varint import encode_varint, encode_varlong

_SLOT = struct.Struct("=16sq")
_TIMESTAMPS = struct.Struct(">qq")  # base and max
_GROWTH_MAX = 11  # bytes by which a record can grow when its timestamp delta does


def find_offset(slots: Buffer, key: Buffer, /) -> int:
    """Return the offset that the map has for a key, -1 without one."""
    return _find(slots, key)[1] - 1 if len(slots) >= SLOT_SIZE else -1


def map_records(
    slots: MutableBuffer,
    room: int,
    buffer: Buffer,
    start: int,
    end: int,
    count: int,
    base_offset: int,
    start_offset: int,
) -> tuple[int, int]:
    """Enter the offsets of uncompressed records from `start_offset` on.

    Returns how many keys are new, and the offset of the first record that did not fit (-1: all
    did). Records without a key need no room.
    """
    added = 0
    for layout in _layouts(buffer, start, end, count):
        offset = base_offset + layout.offset_delta
        if layout.key_length < 0 or offset < start_offset:
            continue
        if len(slots) < SLOT_SIZE:
            return added, offset
        key = buffer[layout.key_start : layout.key_start + layout.key_length]
        position, found = _find(slots, key)
        if not found:
            if added >= room:
                return added, offset
            added += 1
        _SLOT.pack_into(slots, position, md5(key, usedforsecurity=False).digest(), offset + 1)
    return added, -1


def map_batches(
    slots: MutableBuffer, room: int, buffer: Buffer, position: int, end: int, start_offset: int
) -> tuple[int, int, int]:
    """Enter the records of plain batches, whose CRC is checked, until something else comes.

    Returns the position of the first batch that was not done (special, incomplete, or with a record
    that does not fit), how many keys are new, and the offset that did not fit (-1: all did).
    """
    total = 0
    while (header := _plain(buffer, position, end)) is not None:
        check_batch(buffer, position, end)
        if header.last_offset >= start_offset:
            first, last = position + HEADER_SIZE, position + header.size
            added, full_at = map_records(
                slots,
                room - total,
                buffer,
                first,
                last,
                header.count,
                header.base_offset,
                start_offset,
            )
            total += added
            if full_at >= 0:
                return position, total, full_at
        position += header.size
    return position, total, -1


def filter_records(
    slots: Buffer,
    buffer: Buffer,
    start: int,
    end: int,
    count: int,
    base_offset: int,
    map_end: int,
    drop_tombstones: bool = False,
    shift: int = 0,
) -> tuple[bytearray | None, int, bool, int]:
    """Leave out the records that newer ones replace, those without a key and, on request,
    tombstones.

    Records from `map_end` on are all kept. `shift` is added to the timestamp deltas. Returns the
    bytes that are kept (None: all, unchanged), their number, whether tombstones are among them, and
    their greatest timestamp delta.
    """
    kept = bytearray()
    kept_count, tombstones, delta_max = 0, False, -(1 << 63)
    position = start
    for layout in _layouts(buffer, start, end, count):
        begin, position = position, layout.end
        offset = base_offset + layout.offset_delta
        if offset < map_end:
            if layout.key_length < 0 or (layout.value_length < 0 and drop_tombstones):
                continue
            key = buffer[layout.key_start : layout.key_start + layout.key_length]
            if find_offset(slots, key) > offset:
                continue
        kept_count += 1
        tombstones = tombstones or layout.value_length < 0
        delta = wrap64(layout.timestamp_delta + shift)
        delta_max = max(delta_max, delta)
        if shift:
            kept += _shifted(buffer, layout, delta)
        else:
            kept += buffer[begin : layout.end]
    if kept_count == count and not shift:
        return None, count, tombstones, delta_max if count else 0
    return kept, kept_count, tombstones, delta_max if kept_count else 0


def filter_batches(
    slots: Buffer,
    buffer: Buffer,
    position: int,
    end: int,
    out: MutableBuffer,
    out_position: int,
    map_end: int,
    now_ms: int,
    horizon_ms: int,
    retained: Buffer,
) -> tuple[int, int, bool]:
    """Filter plain batches, whose CRC is checked, by the map into `out`, until something else comes
    or `out` could overflow.

    Tombstones that are kept get `horizon_ms` as their delete horizon, unless they have one; when
    that has passed (`now_ms`), they are removed. A batch without records stays if its last offset
    is in `retained` (int64, ascending). Returns both positions, and whether anything was changed.
    """
    last_offsets = memoryview(retained).cast("B").cast("q")
    changed = False
    while (header := _plain(buffer, position, end)) is not None:
        if out_position + header.size + _GROWTH_MAX * max(header.count, 0) > len(out):
            break
        check_batch(buffer, position, end)
        batch = _filter_batch(slots, buffer, position, header, map_end, now_ms, horizon_ms)
        if batch is None:
            batch = memoryview(buffer)[position : position + header.size]
        elif batch or header.last_offset not in last_offsets:
            changed = True
        else:
            changed = changed or header.count > 0
            attributes = header.attributes & ~DELETE_HORIZON_BIT
            batch = rebuild_batch(
                buffer, position, b"", 0, attributes, NO_TIMESTAMP, header.max_timestamp
            )
        out[out_position : out_position + len(batch)] = batch
        out_position += len(batch)
        position += header.size
    return position, out_position, changed


def rebuild_batch(
    buffer: Buffer,
    position: int,
    records: Buffer,
    count: int,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
) -> bytearray:
    """Return the batch at position with other records; offsets, producer and epochs stay."""
    if not 0 <= position <= len(buffer) - HEADER_SIZE:
        raise wrong_range(position, position + HEADER_SIZE, len(buffer))
    batch = bytearray(buffer[position : position + HEADER_SIZE])
    batch += records
    struct.pack_into(">i", batch, LENGTH_AT, len(batch) - PREFIX_SIZE)
    struct.pack_into(">h", batch, ATTRIBUTES_AT, attributes)
    _TIMESTAMPS.pack_into(batch, BASE_TIMESTAMP_AT, base_timestamp, max_timestamp)
    struct.pack_into(">i", batch, COUNT_AT, count)
    struct.pack_into(">I", batch, CRC_AT, crc32c(memoryview(batch)[ATTRIBUTES_AT:]))
    return batch


def _filter_batch(
    slots: Buffer,
    buffer: Buffer,
    position: int,
    header: BatchHeader,
    map_end: int,
    now_ms: int,
    horizon_ms: int,
) -> Buffer | None:
    """Return what is kept of a plain batch: None for all of it, empty for nothing."""
    attributes, base_timestamp, count = header.attributes, header.base_timestamp, header.count
    has_horizon = attributes & DELETE_HORIZON_BIT != 0
    span = (position + HEADER_SIZE, position + header.size, count, header.base_offset, map_end)
    drop = has_horizon and now_ms >= base_timestamp
    kept, kept_count, tombstones, delta_max = filter_records(slots, buffer, *span, drop)
    # A batch that reaches beyond the map is looked at again: its tombstones must wait for that.
    if tombstones and not has_horizon and header.last_offset < map_end:
        shift = wrap64(base_timestamp - horizon_ms)
        attributes |= DELETE_HORIZON_BIT
        base_timestamp = horizon_ms
        kept, _, _, delta_max = filter_records(slots, buffer, *span, drop, shift)
        if kept is None:  # the horizon is the base timestamp already
            kept = bytearray(buffer[span[0] : span[1]])
    if kept is None:
        # A batch that was emptied before stays only if it is still asked for.
        return None if count else b""
    if not kept_count:
        return b""
    max_timestamp = header.max_timestamp
    if not attributes & APPEND_TIME_BIT:
        max_timestamp = wrap64(base_timestamp + delta_max)
    return rebuild_batch(
        buffer, position, kept, kept_count, attributes, base_timestamp, max_timestamp
    )


def _plain(buffer: Buffer, position: int, end: int) -> BatchHeader | None:
    if not 0 <= position <= end <= len(buffer):
        raise wrong_range(position, end, len(buffer))
    if end - position < HEADER_SIZE or buffer[position + MAGIC_AT] < BATCH_MAGIC:
        return None
    header = scan_batch(buffer, position, end)
    return None if header.size > end - position or header.attributes & SPECIAL_MASK else header


def _layouts(buffer: Buffer, position: int, end: int, count: int) -> list[Layout]:
    if not 0 <= position <= end <= len(buffer):
        raise wrong_range(position, end, len(buffer))
    if count < 0:
        raise corrupt_record(0, Fault.COUNT)
    found = []
    for index in range(count):
        try:
            layout = read_layout(buffer, position, end)
        except RecordFault as failure:
            raise corrupt_record(index, failure.fault) from None
        found.append(layout)
        position = layout.end
    if position != end:
        raise corrupt_record(count, Fault.LEFTOVER)
    return found


def _shifted(buffer: Buffer, layout: Layout, timestamp_delta: int) -> bytes:
    """Return the record with another timestamp delta; what follows its offset delta is copied."""
    rest = bytes(buffer[layout.key_start : layout.end])
    key_length = encode_varint(layout.key_length)
    body = b"".join(
        (b"\0", encode_varlong(timestamp_delta), encode_varint(layout.offset_delta), key_length)
    )
    return encode_varint(len(body) + len(rest)) + body + rest


def _find(slots: Buffer, key: Buffer) -> tuple[int, int]:
    """Return the position of the key's slot, or of the free one where it belongs, and its value."""
    digest = md5(key, usedforsecurity=False).digest()
    slot_count = len(slots) // SLOT_SIZE
    slot = int.from_bytes(digest[:8], "little") * slot_count >> 64
    while True:
        known, value = _SLOT.unpack_from(slots, slot * SLOT_SIZE)
        if not value or known == digest:
            return slot * SLOT_SIZE, value
        slot = (slot + 1) % slot_count
