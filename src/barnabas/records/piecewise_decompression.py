"""Compressed records, unpacked piece by piece: however much there is, little of it is held.

A piece is at most a megabyte or what the codec packs as one block: 4 MiB for lz4, 32 KiB for
snappy. Three forms cannot be unpacked in pieces, because what comes later refers to all that was
before: a bare snappy block, lz4 blocks that are linked, and zstd with a large window. They are
unpacked as long as they take no more than `held_max` bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import cramjam

from barnabas.kernels import Buffer
from barnabas.records import lz4_frame, zstd_frame
from barnabas.records.bounds import whole_too_large
from barnabas.records.compression import (
    GZIP_WINDOW,
    Codec,
    TooLargeError,
    corrupt,
    decompress,
    fast_zlib,
    snappy_blocks,
    unpack_snappy_block,
)

PIECE_BYTES = 1 << 20

Pieces = Iterator[Buffer]


def unpack_pieces(codec: Codec, data: memoryview, held_max: int) -> Pieces:
    """Yield what was packed; raise CorruptRecordError where it is damaged or must be held whole."""
    return _PIECES[codec](data, held_max)


def _gzip_pieces(data: memoryview, held_max: int) -> Pieces:
    module: Any = fast_zlib or zlib
    rest: Buffer = data
    while rest:  # one turn for each member
        unpacker = module.decompressobj(GZIP_WINDOW)
        while not unpacker.eof:
            try:
                piece = unpacker.decompress(rest, PIECE_BYTES)
            except (zlib.error, module.error) as failure:
                raise corrupt("gzip", failure) from None
            rest = unpacker.unconsumed_tail
            if piece:
                yield piece
            elif not rest and not unpacker.eof:
                raise corrupt("gzip", "it is truncated")
        rest = unpacker.unused_data


def _snappy_pieces(data: memoryview, held_max: int) -> Pieces:
    for block in snappy_blocks(data):
        try:
            yield unpack_snappy_block(block, held_max, held_max)
        except TooLargeError:
            raise whole_too_large(held_max, "it is one block of snappy") from None


def _lz4_pieces(data: memoryview, held_max: int) -> Pieces:
    for start, end, bound in lz4_frame.walk(data):
        blocks = lz4_frame.independent_blocks(data[start:end])
        if blocks is None:
            try:
                yield decompress(Codec.LZ4, data[start:end], min(bound, held_max))
            except TooLargeError:
                raise whole_too_large(held_max, "its lz4 blocks are linked") from None
            continue
        for block, is_stored, size_max in blocks:
            if is_stored:
                yield block
                continue
            out = memoryview(bytearray(size_max))
            try:
                filled = cramjam.lz4.decompress_block_into(block, out, output_len=size_max)
            except cramjam.DecompressionError as failure:
                raise corrupt("lz4", failure) from None
            yield out[:filled]


def _zstd_pieces(data: memoryview, held_max: int) -> Pieces:
    import zstandard  # only large batches need it: cramjam unpacks no frame in pieces

    for start, end, bound in zstd_frame.walk(data):
        window = zstd_frame.window_size(data, start)
        if min(window, bound) > held_max:
            raise whole_too_large(held_max, f"its zstd window has {window} bytes")
        reader = zstandard.ZstdDecompressor().stream_reader(data[start:end])
        try:
            while piece := reader.read(PIECE_BYTES):
                yield piece
        except zstandard.ZstdError as failure:
            raise corrupt("zstd", failure) from None


_PIECES: dict[Codec, Callable[[memoryview, int], Pieces]] = {
    Codec.GZIP: _gzip_pieces,
    Codec.SNAPPY: _snappy_pieces,
    Codec.LZ4: _lz4_pieces,
    Codec.ZSTD: _zstd_pieces,
}
