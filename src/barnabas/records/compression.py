"""The four codecs of record batches, in the framings that Kafka's clients write and accept.

Decompression is bounded: no call produces, or allocates for, more than `limit` bytes, however much
the input claims or contains. For lz4 and zstd the frame's block headers are walked first, which
gives an upper bound of the output before anything is unpacked. Invalid input raises
CorruptRecordError. Large batches are unpacked and packed in pieces (`piecewise_decompression`,
`packing`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import cramjam

from barnabas.kernels import Buffer
from barnabas.kernels.batch_header import Codec as Codec
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptRecordError, InvalidValueError
from barnabas.records import lz4_frame, zstd_frame

fast_zlib: Any
try:
    from isal import isal_zlib as fast_zlib
except ImportError:  # a platform without it: the same format, slower
    fast_zlib = None

DEFAULT_LIMIT = 256 * 1024 * 1024

GZIP_WINDOW = 31  # zlib's way to say: a gzip wrapper around a 32 KiB window
_GZIP_CHUNK = 1 << 20
_XERIAL_MAGIC = b"\x82SNAPPY\0"
XERIAL_HEADER = _XERIAL_MAGIC + b"\0\0\0\1\0\0\0\1"
_XERIAL_BLOCK = 32 * 1024
_SNAPPY_EXPANSION_MAX = 22  # the densest element makes 64 bytes of 3


def compress(codec: Codec | int | str, data: Buffer, level: int | None = None) -> bytes:
    """Compress records; `level` has Kafka's range for the codec (None: Kafka's default)."""
    return _COMPRESS[Codec.of(codec)](data, level)


def decompress(
    codec: Codec | int | str,
    data: Buffer,
    limit: int = DEFAULT_LIMIT,
    *,
    old_lz4_checksum: bool = False,
) -> bytes:
    """Decompress records; raise CorruptRecordError if they are damaged or larger than `limit`.

    `old_lz4_checksum` accepts the header checksum that clients wrote into messages of magic 0,
    which covered the wrong bytes.
    """
    codec = Codec.of(codec)
    if old_lz4_checksum and codec is Codec.LZ4:
        data = lz4_frame.repair_header(data)
    return _DECOMPRESS[codec](memoryview(data), limit)


class TooLargeError(CorruptRecordError):
    """Compressed records that unpack to more than was allowed."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ErrorCode.MESSAGE_TOO_LARGE)


def too_large(limit: int) -> TooLargeError:
    """Describe input that unpacks to more than was allowed."""
    return TooLargeError(f"the records decompress to more than the limit of {limit} bytes")


def corrupt(codec: str, failure: object) -> CorruptRecordError:
    """Describe input that cannot be unpacked."""
    return CorruptRecordError(f"damaged {codec} data: {failure}")


def _copy(data: Buffer, level: int | None) -> bytes:
    return bytes(data)


def _copy_bounded(data: memoryview, limit: int) -> bytes:
    if len(data) > limit:
        raise too_large(limit)
    return bytes(data)


def _gzip(data: Buffer, level: int | None) -> bytes:
    fast = _fast_level(level)
    if fast is not None:
        packed: bytes = fast_zlib.compress(data, fast, GZIP_WINDOW)
        return packed
    packer = gzip_packer(level)
    return bytes(packer.compress(data) + packer.flush())


def gzip_packer(level: int | None) -> Any:
    """Return an object that compresses in pieces, as zlib's do."""
    fast = _fast_level(level)
    if fast is not None:
        return fast_zlib.compressobj(fast, wbits=GZIP_WINDOW)
    return zlib.compressobj(-1 if level is None else level, wbits=GZIP_WINDOW)


def _fast_level(level: int | None) -> int | None:
    """Return isal's level for a level of gzip; None if zlib must be used."""
    level = -1 if level is None else level
    if not (level == -1 or 1 <= level <= 9):
        raise InvalidValueError(f"gzip level {level}: must be -1 or 1 to 9")
    # isal has levels 0 to 3; above 6 the user asks for size, where zlib is the better one.
    if fast_zlib is None or level > 6:
        return None
    return 1 if 1 <= level <= 3 else 2


def _gunzip(data: memoryview, limit: int) -> bytes:
    module: Any = fast_zlib or zlib
    chunks: list[bytes] = []
    room = limit
    rest: Buffer = data
    while True:  # one turn for each member
        unpacker = module.decompressobj(GZIP_WINDOW)
        while not unpacker.eof:
            try:
                # One byte more than there is room tells "full" from "too much".
                chunk = unpacker.decompress(rest, min(room + 1, _GZIP_CHUNK))
            except (zlib.error, module.error) as failure:
                raise corrupt("gzip", failure) from None
            rest = unpacker.unconsumed_tail
            room -= len(chunk)
            if room < 0:
                raise too_large(limit)
            if not chunk and not rest and not unpacker.eof:
                raise corrupt("gzip", "it is truncated")
            chunks.append(chunk)
        rest = unpacker.unused_data
        if not rest:
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _snappy(data: Buffer, level: int | None) -> bytes:
    out = bytearray(XERIAL_HEADER)
    snappy_framed(out, memoryview(data))
    return bytes(out)


def snappy_framed(out: bytearray, source: memoryview) -> None:
    """Append the framed blocks of some data to a stream."""
    for start in range(0, len(source), _XERIAL_BLOCK):
        block = cramjam.snappy.compress_raw(source[start : start + _XERIAL_BLOCK])
        out += len(block).to_bytes(4, "big")
        out += block


def _unsnappy(data: memoryview, limit: int) -> bytes:
    blocks: list[Buffer] = []
    room = limit
    for block in snappy_blocks(data):
        blocks.append(unpack_snappy_block(block, room, limit))
        room -= len(blocks[-1])
    return b"".join(blocks)


def snappy_blocks(data: memoryview) -> Iterator[memoryview]:
    """Yield the raw blocks of a stream; what is not framed is one bare block."""
    if data[:8] != _XERIAL_MAGIC:  # librdkafka and others write one bare block
        yield data
        return
    position = 0
    while position < len(data):
        if data[position : position + 8] == _XERIAL_MAGIC:  # also where streams are concatenated
            position += len(XERIAL_HEADER)
            continue
        size = int.from_bytes(data[position : position + 4], "big")
        block = data[position + 4 : position + 4 + size]
        if len(block) < size or position + 4 > len(data):
            raise corrupt("snappy", "a block is truncated")
        yield block
        position += 4 + size
    if position > len(data):
        raise corrupt("snappy", "the stream header is truncated")


def unpack_snappy_block(block: memoryview, room: int, limit: int) -> Buffer:
    """Return the content of a raw block, if it fits into `room`."""
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > _SNAPPY_EXPANSION_MAX * len(block):
            raise corrupt("snappy", f"{len(block)} bytes cannot hold {size}")
        if size > room:
            raise too_large(limit)
        return memoryview(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as failure:
        raise corrupt("snappy", failure) from None


def _lz4(data: Buffer, level: int | None) -> bytes:
    return lz4_frame.write(memoryview(data), lz4_level(level))


def lz4_level(level: int | None) -> int:
    """Return the level to use; InvalidValueError if Kafka has no such level."""
    level = 9 if level is None else level
    if not 1 <= level <= 17:
        raise InvalidValueError(f"lz4 level {level}: must be 1 to 17")
    return level


def _unlz4(data: memoryview, limit: int) -> bytes:
    block = lz4_frame.single_block(data)
    if block is not None and limit >= lz4_frame.BLOCK_SIZE:
        out = memoryview(bytearray(lz4_frame.BLOCK_SIZE))
        try:
            filled = cramjam.lz4.decompress_block_into(block, out, output_len=len(out))
        except cramjam.DecompressionError as failure:
            raise corrupt("lz4", failure) from None
        return bytes(out[:filled])
    frames = lz4_frame.walk(data)
    return _unpack_frames("lz4", cramjam.lz4.decompress_into, data, frames, limit)


def _zstd(data: Buffer, level: int | None) -> bytes:
    return bytes(cramjam.zstd.compress(data, zstd_level(level)))


def zstd_level(level: int | None) -> int:
    """Return the level to use; InvalidValueError if Kafka has no such level."""
    level = 3 if level is None else level
    if not -131072 <= level <= 22:
        raise InvalidValueError(f"zstd level {level}: must be -131072 to 22")
    return level


def _unzstd(data: memoryview, limit: int) -> bytes:
    frames = zstd_frame.walk(data)
    return _unpack_frames("zstd", cramjam.zstd.decompress_into, data, frames, limit)


def _unpack_frames(
    codec: str,
    unpack: Callable[[memoryview, memoryview], int],
    data: memoryview,
    frames: list[tuple[int, int, int]],
    limit: int,
) -> bytes:
    """Unpack frames (start, end, upper bound of the output) into one buffer of bounded size."""
    bound = sum(frame[2] for frame in frames)
    # The buffer is zeroed lazily by the system, so what the bound overstates costs no memory.
    out = memoryview(bytearray(min(bound, limit)))
    filled = 0
    for start, end, _ in frames:
        try:
            filled += unpack(data[start:end], out[filled:])
        except cramjam.DecompressionError as failure:
            if bound > limit and "whole buffer" in str(failure):
                raise too_large(limit) from None
            raise corrupt(codec, failure) from None
    return bytes(out[:filled])


_COMPRESS: dict[Codec, Callable[[Buffer, int | None], bytes]] = {
    Codec.NONE: _copy,
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}

_DECOMPRESS: dict[Codec, Callable[[memoryview, int], bytes]] = {
    Codec.NONE: _copy_bounded,
    Codec.GZIP: _gunzip,
    Codec.SNAPPY: _unsnappy,
    Codec.LZ4: _unlz4,
    Codec.ZSTD: _unzstd,
}
