"""The records of a compressed batch in chunks of whole records, within bounds.

Most batches unpack to a megabyte or less and are one chunk, unpacked in one call. Of larger ones
only a chunk is in memory at a time, so a few kilobytes that unpack to gigabytes cost no memory. A
record larger than its limit is rejected by its length, before it is unpacked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.kernels import CODEC_MASK, HEADER_SIZE, BatchHeader, Buffer, split_records
from barnabas.records.bounds import READING, Bounds, batch_too_large, record_too_large
from barnabas.records.compression import Codec, TooLargeError, decompress
from barnabas.records.piecewise_decompression import unpack_pieces

CHUNK_BYTES = 1 << 20
_WINDOW_BYTES = 8 << 20  # what every decoder of zstd should offer (RFC 8878), whatever the bound

Chunk = tuple[Buffer, int]
"""Whole records and their number."""


def read_chunks(
    buffer: Buffer, position: int, header: BatchHeader, bounds: Bounds = READING
) -> Iterable[Chunk]:
    """Return the records of the whole batch at a position, unpacked as they are asked for."""
    records = memoryview(buffer)[position + HEADER_SIZE : position + header.size]
    codec = header.attributes & CODEC_MASK
    if not codec:
        return ((records, header.count),)
    found = unpack_chunks(codec, records, header.count, bounds)
    return ((found, header.count),) if isinstance(found, bytes) else found


def unpack_chunks(
    codec: int, data: memoryview, count: int, bounds: Bounds = READING
) -> bytes | Iterator[Chunk]:
    """Return all `count` records if they are few bytes, else chunks of them.

    Errors in a record are left to the reader of the chunk: a truncated one, or bytes after the
    last, are in the last chunk. Anything above a limit raises TooLargeError.
    """
    codec = Codec.of(codec)
    try:
        return decompress(codec, data, min(CHUNK_BYTES, bounds.batch))
    except TooLargeError:
        held_max = bounds.held_max(len(data))
        pieces = unpack_pieces(codec, data, max(held_max, _WINDOW_BYTES))
        return _chunks(_bounded(pieces, bounds.batch), count, held_max)


def _bounded(pieces: Iterable[Buffer], bound: int) -> Iterator[Buffer]:
    """Pass pieces on until they are more than a batch may have."""
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > bound:
            raise batch_too_large(bound)
        yield piece


def _chunks(pieces: Iterable[Buffer], count: int, record_max: int) -> Iterator[Chunk]:
    held = bytearray()
    wanted = CHUNK_BYTES
    for piece in pieces:
        held += piece
        del piece
        if len(held) < wanted:
            continue
        found, end, following = split_records(held, 0, len(held), count)
        if following < 0 or found == count:
            # The next record has no length, or there should be none: the reader of this chunk is
            # to say so. If nothing is left, what may still come is left over all the same.
            if end == len(held) and following == 0:
                wanted = len(held) + 1
                continue
            yield held, found + (following < 0)
            return
        if following > record_max:
            if found:
                yield held[:end], found
            raise record_too_large(following, record_max)
        if found:
            rest = held[end:]
            del held[end:]
            yield held, found
            held = rest
            count -= found
        wanted = max(CHUNK_BYTES, following)
    found, end, following = split_records(held, 0, len(held), count)
    if found < count:
        if following > record_max:
            raise record_too_large(following, record_max)
        yield held, found + 1  # this one is cut
    elif held:
        yield held, count
