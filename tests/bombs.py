"""Compressed batches that unpack to far more than they weigh, made without holding what they hold.

The records are zeros in pieces, so that every codec packs them as well as it can.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import cramjam
import zstandard

from barnabas.kernels import HEADER_SIZE, crc32c, encode_varint
from barnabas.records.compression import Codec

MEGABYTE = 1 << 20
_PIECE = bytes(MEGABYTE)
_LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x70\x73"  # independent blocks of 4 MiB
_LZ4_BLOCK = 4 * MEGABYTE
_XERIAL_HEADER = b"\x82SNAPPY\0\0\0\0\1\0\0\0\1"
_XERIAL_BLOCK = 32 * 1024


def zeros(size: int) -> Iterator[bytes]:
    """Yield so many zero bytes in pieces."""
    while size > 0:
        yield _PIECE[:size]
        size -= MEGABYTE


def one_record(value_size: int, key: bytes | None = b"k") -> Iterator[bytes]:
    """Yield a record of magic 2 whose value is all zeros."""
    head = b"\0\0\0" + (encode_varint(-1) if key is None else encode_varint(len(key)) + key)
    head += encode_varint(value_size)
    yield encode_varint(len(head) + value_size + 1) + head
    yield from zeros(value_size)
    yield b"\0"


def many_records(count: int, value_size: int, first_delta: int = 0) -> Iterator[bytes]:
    """Yield small records with keys, a few thousand at a time."""
    piece = bytearray()
    for index in range(count):
        key = b"key-%d" % (index % 1000)
        body = b"\0\0" + encode_varint(first_delta + index) + encode_varint(len(key)) + key
        body += encode_varint(value_size) + bytes(value_size) + b"\0"
        piece += encode_varint(len(body)) + body
        if len(piece) >= MEGABYTE:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


def one_message(magic: int, value_size: int) -> Iterator[bytes]:
    """Yield a message of magic 0 or 1 whose value is all zeros."""
    head = struct.pack(">bb", magic, 0) + (struct.pack(">q", 1) if magic else b"")
    head += struct.pack(">ii", -1, value_size)
    crc = zlib.crc32(head)
    for piece in zeros(value_size):
        crc = zlib.crc32(piece, crc)
    yield struct.pack(">qiI", 0, 4 + len(head) + value_size, crc) + head
    yield from zeros(value_size)


def packed(codec: Codec, pieces: Iterable[bytes]) -> bytes:
    """Return the pieces as one compressed stream."""
    if codec is Codec.NONE:
        return b"".join(pieces)
    if codec is Codec.GZIP:
        packer: Any = zlib.compressobj(9, wbits=31)
    elif codec is Codec.ZSTD:
        packer = zstandard.ZstdCompressor(level=3).compressobj()
    else:
        return _packed_blocks(codec, pieces)
    return b"".join([packer.compress(piece) for piece in pieces]) + bytes(packer.flush())


def _packed_blocks(codec: Codec, pieces: Iterable[bytes]) -> bytes:
    size_max = _LZ4_BLOCK if codec is Codec.LZ4 else _XERIAL_BLOCK
    out = bytearray(_LZ4_HEADER if codec is Codec.LZ4 else _XERIAL_HEADER)
    held = bytearray()
    known: dict[bytes, bytes] = {}

    def put(block: bytes) -> None:
        result = known.get(block)
        if result is None:
            if codec is Codec.LZ4:
                result = bytes(cramjam.lz4.compress_block(block, store_size=False))
                result = len(result).to_bytes(4, "little") + result
            else:
                result = bytes(cramjam.snappy.compress_raw(block))
                result = len(result).to_bytes(4, "big") + result
            if len(known) < 4:
                known[block] = result
        out.extend(result)

    for piece in pieces:
        held += piece
        while len(held) >= size_max:
            put(bytes(held[:size_max]))
            del held[:size_max]
    if held:
        put(bytes(held))
    if codec is Codec.LZ4:
        out += b"\0\0\0\0"
    return bytes(out)


def batch(
    codec: Codec, pieces: Iterable[bytes], count: int = 1, *, timestamp: int = 1_700_000_000_000
) -> bytes:
    """Return a batch of magic 2 around records that are packed as they come."""
    records = packed(codec, pieces)
    body = struct.pack(">hiqqqhii", codec, count - 1, timestamp, timestamp, -1, -1, -1, count)
    body += records
    head = struct.pack(">qiibI", 0, HEADER_SIZE - 12 + len(records), -1, 2, crc32c(body))
    return head + body


def wrapper(codec: Codec, pieces: Iterable[bytes], magic: int) -> bytes:
    """Return a message of magic 0 or 1 around a message set that is packed as it comes."""
    value = packed(codec, pieces)
    if magic == 0 and codec is Codec.LZ4:
        value = value[:6] + b"\0" + value[7:]  # such clients wrote another checksum
    body = struct.pack(">bb", magic, codec) + (struct.pack(">q", 1) if magic else b"")
    body += struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", 0, 4 + len(body), zlib.crc32(body)) + body
