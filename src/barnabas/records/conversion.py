"""Entries of the formats before batches, rebuilt as batches of magic 2 with the same offsets.

Old segments are served as they are stored. A client that reads records converts on arrival, so that
readers need to know only one format; compaction converts what is stored. Offsets, timestamps and
their type, keys and values are kept. Uncompressed messages are combined, because a batch for each
of them would be twice their size.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.kernels import (
    APPEND_TIME_BIT,
    CODEC_MASK,
    BatchBuilder,
    BatchHeader,
    Buffer,
    Record,
    stamp_timestamp,
)
from barnabas.kernels.batch_header import MESSAGE_MIN
from barnabas.model.errors import CorruptRecordError
from barnabas.records.bounds import RECORD_MAX
from barnabas.records.builder import finish
from barnabas.records.compression import Codec
from barnabas.records.legacy import iterate_messages
from barnabas.records.message_set import check_message, is_message, scan_message

TOGETHER_BYTES_MAX = 16 * 1024
"""Maximum bytes of uncompressed messages per batch, as a producer would have sent them."""

LOOSE_BYTES_MAX = 4 * 1024 * 1024
"""How much of converted wrappers stays uncompressed; those behind are compressed again, so that
many small ones that unpack to much are not all held."""

OFFSETS_MAX = 2**31
"""Maximum offsets of one batch: its last offset delta has 32 bits."""


def to_batches(
    buffer: Buffer, unpacked_max: int = RECORD_MAX, loose_max: int = LOOSE_BYTES_MAX
) -> Buffer:
    """Return the same bytes, or batches of what older formats are at their start.

    The records of wrappers come uncompressed as long as they have `loose_max` bytes in all; each
    wrapper may unpack to `unpacked_max` bytes. The answer ends before one that cannot be converted,
    so that a reader gets what precedes it; if it comes first, this raises CorruptRecordError.
    """
    if not is_message(buffer):
        return buffer
    converted = bytearray()
    position, end = 0, len(buffer)
    while is_message(buffer, position) and end - position >= MESSAGE_MIN:
        if scan_message(buffer, position).size > end - position:
            break
        try:
            batch, position = take_batch(
                buffer,
                position,
                end,
                packed=False,
                unpacked_max=unpacked_max,
                loose_max=loose_max - len(converted),
            )
        except CorruptRecordError:
            if not converted:
                raise
            return converted
        converted += batch
    converted += memoryview(buffer)[position:]
    return converted


def first_offset(buffer: Buffer, position: int = 0, unpacked_max: int = RECORD_MAX) -> int:
    """Return the offset of the first message of the whole entry at position."""
    header = scan_message(buffer, position)
    if not header.is_compressed:
        return header.base_offset
    entry = memoryview(buffer)[position : position + header.size]
    return next(iterate_messages(entry, limit=unpacked_max)).offset


def take_batch(
    buffer: Buffer,
    position: int,
    end: int,
    *,
    packed: bool,
    unpacked_max: int = RECORD_MAX,
    loose_max: int = RECORD_MAX,
) -> tuple[bytearray, int]:
    """Return the whole entry at position as a batch, and the position behind it.

    Whole uncompressed messages that follow each other become one batch. With `packed`, or if it is
    larger than `loose_max`, a batch is compressed like its wrapper.
    """
    header = check_message(buffer, position, end)
    after = position + header.size
    if not header.is_compressed:
        last = header
        while after - position < TOGETHER_BYTES_MAX and is_message(buffer, after):
            if end - after < MESSAGE_MIN:
                break
            following = scan_message(buffer, after, end)
            if following.size > end - after or not _goes_with(following, header, last):
                break
            last = following
            after += following.size
        last_offset = last.base_offset
    else:
        last_offset = header.base_offset
    records = iterate_messages(memoryview(buffer)[position:after], limit=unpacked_max)
    return _build(records, header, last_offset, 0 if packed else loose_max), after


def _goes_with(following: BatchHeader, first: BatchHeader, last: BatchHeader) -> bool:
    """Return whether a message can be in one batch with those before it."""
    attributes, offset = following.attributes, following.base_offset
    # A batch has one type of timestamps, and one time where the broker's clock gave it.
    stamped = attributes & APPEND_TIME_BIT
    return (
        attributes == first.attributes
        and (not stamped or following.max_timestamp == first.max_timestamp)
        and last.base_offset < offset < first.base_offset + OFFSETS_MAX
    )


def _build(
    records: Iterator[Record], header: BatchHeader, last_offset: int, loose_max: int
) -> bytearray:
    builder = BatchBuilder()
    base_offset = last = -1
    for record in records:
        if not builder.count:
            base_offset = record.offset
        elif record.offset <= last:
            raise CorruptRecordError(
                f"offset {record.offset} follows offset {last} in a compressed message"
            )
        last = record.offset
        if not 0 <= last - base_offset < OFFSETS_MAX or last > last_offset:
            raise CorruptRecordError(
                f"offset {last} in a compressed message of offsets {base_offset} to {last_offset}"
            )
        if builder.append(record.timestamp, record.key, record.value, (), last - base_offset) < 0:
            raise CorruptRecordError(
                f"the messages from offset {base_offset} on are too large for a batch"
            )
    span = last_offset - base_offset
    if span >= OFFSETS_MAX:
        raise CorruptRecordError(
            f"a compressed message of {span + 1} offsets from {base_offset} on: must be at most "
            f"{OFFSETS_MAX}"
        )
    batch = finish(
        builder,
        Codec.of(header.attributes & CODEC_MASK) if builder.size > loose_max else Codec.NONE,
        base_offset=base_offset,
        last_offset_delta=span,
    )
    if header.is_append_time:
        stamp_timestamp(batch, 0, True, header.max_timestamp)
    return batch
