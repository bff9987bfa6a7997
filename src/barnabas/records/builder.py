"""Whole batches built in one call, and batches recompressed with another codec.

What grows record by record (a producer's open batch) uses `kernels.BatchBuilder` directly.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice

from barnabas.kernels import (
    APPEND_TIME_BIT,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_SIZE,
    TRANSACTIONAL_BIT,
    BatchBuilder,
    Buffer,
    Record,
    Row,
    stamp_timestamp,
)
from barnabas.kernels.batch_header import ATTRIBUTES_AT, LENGTH_AT, PREFIX_SIZE, SIZE_MAX
from barnabas.model.ids import NO_EPOCH
from barnabas.records.batch import BatchHeader
from barnabas.records.bounded_decompression import Chunk, unpack_chunks
from barnabas.records.bounds import READING, Bounds
from barnabas.records.compression import Codec, TooLargeError, compress
from barnabas.records.packing import Packing

_ROWS = 1000


def build_batch(
    records: Iterable[Record | Row],
    codec: Codec | int | str = Codec.NONE,
    *,
    level: int | None = None,
    base_offset: int = 0,
    leader_epoch: int = NO_EPOCH,
    producer_id: int = -1,
    producer_epoch: int = NO_EPOCH,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    append_time: int | None = None,
) -> bytes:
    """Return one batch of the records: Record objects or rows (timestamp, key, value[, headers]).

    There must be at least one. Offsets count up from `base_offset`; those of Record objects are
    ignored. With `append_time` the batch has the broker's timestamp.
    """
    builder = BatchBuilder()
    remaining = iter(records)
    # A few at a time: small records take several times their size as objects.
    while some := list(islice(remaining, _ROWS)):
        builder.append_many(
            [
                (record.timestamp, record.key, record.value, record.headers)
                if isinstance(record, Record)
                else record
                for record in some
            ]
        )
    batch = finish(
        builder,
        codec,
        level,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        attributes=(TRANSACTIONAL_BIT if transactional else 0) | (CONTROL_BIT if control else 0),
    )
    if append_time is not None:
        stamp_timestamp(batch, 0, True, append_time)
    return bytes(batch)


def finish(
    builder: BatchBuilder,
    codec: Codec | int | str = Codec.NONE,
    level: int | None = None,
    *,
    base_offset: int = 0,
    leader_epoch: int = NO_EPOCH,
    producer_id: int = -1,
    producer_epoch: int = NO_EPOCH,
    base_sequence: int = -1,
    attributes: int = 0,
    last_offset_delta: int = -1,
) -> bytearray:
    """Finish a builder with a codec by number or name; the batch can still be stamped in place."""
    codec = Codec.of(codec)
    packer: Callable[[memoryview], bytes] | None = None
    if codec is not Codec.NONE:
        packer = partial(compress, codec, level=level)
    return builder.finish(
        codec=codec,
        compress=packer,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        attributes=attributes,
        last_offset_delta=last_offset_delta,
    )


def recompress(
    buffer: Buffer,
    header: BatchHeader,
    codec: Codec | int | str,
    *,
    level: int | None = None,
    position: int = 0,
    bounds: Bounds = READING,
    size_max: int = SIZE_MAX,
) -> bytearray:
    """Return the batch at position with its records compressed by another codec, otherwise
    unchanged.

    A large one goes from codec to codec in pieces; TooLargeError says that the new batch has more
    than `size_max` bytes.
    """
    codec = Codec.of(codec)
    batch = bytearray(memoryview(buffer)[position : position + HEADER_SIZE])
    records = memoryview(buffer)[position + HEADER_SIZE : position + header.size]
    found: Buffer | Iterator[Chunk] = records
    if header.attributes & CODEC_MASK:
        found = unpack_chunks(header.attributes & CODEC_MASK, records, header.count, bounds)
    if isinstance(found, (bytes, bytearray, memoryview)):
        batch += compress(codec, found, level)
    else:
        packing = Packing(codec, level)
        for chunk, _ in found:
            packing.add(chunk)
            if HEADER_SIZE + packing.size > size_max:
                raise TooLargeError(
                    f"with the codec {codec.name.lower()} the batch has more than {size_max} "
                    "bytes, which is max.message.bytes"
                )
        batch += packing.finish()
    struct.pack_into(">i", batch, LENGTH_AT, len(batch) - PREFIX_SIZE)
    struct.pack_into(">h", batch, ATTRIBUTES_AT, header.attributes & ~CODEC_MASK | codec)
    # Stamping what is already there computes the CRC of the new bytes.
    stamp_timestamp(batch, 0, header.attributes & APPEND_TIME_BIT != 0, header.max_timestamp)
    return batch
