"""LZ4 frames: written as Java's client writes them, and walked before they are unpacked.

    magic 04 22 4d 18 | FLG | BD | [content size 8] | [dictionary id 4] | header checksum
    | ([size LE, high bit: stored] block [checksum 4])* | 00 00 00 00 | [content checksum 4]

Java rejects blocks that refer to earlier ones, so these are independent: 64 KiB each, no checksums.
"""

from __future__ import annotations

from collections.abc import Iterator

import cramjam

from barnabas.kernels import Buffer
from barnabas.model.errors import CorruptRecordError

MAGIC = b"\x04\x22\x4d\x18"
HEADER = MAGIC + b"\x60\x40\x82"  # version 1, independent blocks, of 64 KiB, checksum of the two
BLOCK_SIZE = 64 * 1024
_FRAME_SIZE = 7 + 4 + 4  # header, size of a block, end mark
END_MARK = b"\0\0\0\0"
_STORED = 1 << 31
_INDEPENDENT = 0x20  # of the flags
_BLOCK_SIZES = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}
_EXPANSION_MAX = 255  # a length byte of an lz4 sequence adds at most this much
_FAST_LEVEL = 9  # Kafka's default stands for the fast compressor; all other levels are lz4hc's


def write(data: memoryview, level: int) -> bytes:
    """Return the data as one frame; other levels than 9 spend time to save space."""
    slow = packer(level)
    if slow is not None:
        slow.compress(bytes(data))
        return bytes(slow.finish())
    out = bytearray(HEADER)
    add_blocks(out, data)
    out += END_MARK
    return bytes(out)


def packer(level: int) -> cramjam.lz4.Compressor | None:
    """Return what compresses in pieces at a level; None for the one whose frames we write."""
    if level == _FAST_LEVEL:
        return None
    return cramjam.lz4.Compressor(
        level=min(max(level, 3), 12), content_checksum=False, block_linked=False
    )


def add_blocks(out: bytearray, data: memoryview) -> None:
    """Append the blocks of some data to an open frame of this layout."""
    for start in range(0, len(data), BLOCK_SIZE):
        block: Buffer = data[start : start + BLOCK_SIZE]
        packed = cramjam.lz4.compress_block(block, store_size=False)
        size = len(packed)
        if size < len(block):
            block = bytes(packed)
        else:
            size = len(block) | _STORED
        out += size.to_bytes(4, "little")
        out += block


def single_block(data: memoryview) -> memoryview | None:
    """Return the one packed block of the frame that most clients write; None for any other.

    It holds at most `BLOCK_SIZE` bytes unpacked. A look at it costs a tenth of a walk.
    """
    size = len(data) - _FRAME_SIZE
    if size <= 0 or data[:7] != HEADER or data[-4:] != END_MARK:
        return None
    if int.from_bytes(data[7:11], "little") != size:
        return None
    return data[11:-4]


def walk(data: memoryview) -> list[tuple[int, int, int]]:
    """Return (start, end, upper bound of the output) of each frame."""
    frames = []
    position = 0
    while position < len(data):
        start = position
        flags, _, position = _read_header(data, start)
        block_size_max = _BLOCK_SIZES.get(data[start + 5] >> 4)
        if block_size_max is None:
            raise _damaged(f"unknown block size {data[start + 5] >> 4}")
        bound = 0
        while size := _read_size(data, position):
            length = size & ~_STORED
            bound += length if size & _STORED else min(block_size_max, _EXPANSION_MAX * length)
            position += 4 + length + (4 if flags & 0x10 else 0)
        position += 4 + (4 if flags & 0x04 else 0)
        if position > len(data):
            raise _damaged("a frame is truncated")
        frames.append((start, position, bound))
    if not frames:
        raise _damaged("there is no frame")
    return frames


def independent_blocks(frame: memoryview) -> Iterator[tuple[memoryview, bool, int]] | None:
    """Yield (block, whether it is stored, the most that it holds) of a frame that was walked.

    None if its blocks refer to earlier ones.
    """
    flags, _, position = _read_header(frame, 0)
    return _blocks(frame, flags, position) if flags & _INDEPENDENT else None


def _blocks(frame: memoryview, flags: int, position: int) -> Iterator[tuple[memoryview, bool, int]]:
    size_max = _BLOCK_SIZES[frame[5] >> 4]
    while size := _read_size(frame, position):
        length = size & ~_STORED
        block = frame[position + 4 : position + 4 + length]
        yield block, size & _STORED != 0, min(size_max, _EXPANSION_MAX * length)
        position += 4 + length + (4 if flags & 0x10 else 0)


def repair_header(data: Buffer) -> bytes:
    """Return the data with the header checksum of its first frame set right."""
    _, checksum_at, end = _read_header(memoryview(data), 0)
    checksum = _xxh32_short(bytes(data[4:checksum_at])) >> 8 & 0xFF
    return bytes(data[:checksum_at]) + bytes([checksum]) + bytes(data[end:])


def _read_header(data: memoryview, start: int) -> tuple[int, int, int]:
    """Return the flags, the position of the header checksum and that of the first block."""
    if data[start : start + 4] != MAGIC:
        raise _damaged("a frame has the wrong magic")
    if len(data) - start < 7:
        raise _damaged("a frame header is truncated")
    flags = data[start + 4]
    checksum_at = start + 6 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    if checksum_at >= len(data):
        raise _damaged("a frame header is truncated")
    return flags, checksum_at, checksum_at + 1


def _read_size(data: memoryview, position: int) -> int:
    if position + 4 > len(data):
        raise _damaged("a frame is truncated")
    return int.from_bytes(data[position : position + 4], "little")


def _xxh32_short(data: bytes) -> int:
    """Return xxHash32, seed 0, of fewer than 16 bytes: all that a frame header has."""
    mask = 0xFFFFFFFF
    prime2, prime3, prime4, prime5 = 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
    hashed = prime5 + len(data)
    whole = len(data) & ~3
    for index in range(0, whole, 4):
        hashed = hashed + int.from_bytes(data[index : index + 4], "little") * prime3 & mask
        hashed = (hashed << 17 | hashed >> 15) * prime4 & mask
    for byte in data[whole:]:
        hashed = hashed + byte * prime5 & mask
        hashed = (hashed << 11 | hashed >> 21) * 0x9E3779B1 & mask
    hashed = (hashed ^ hashed >> 15) * prime2 & mask
    hashed = (hashed ^ hashed >> 13) * prime3 & mask
    return hashed ^ hashed >> 16


def _damaged(reason: str) -> CorruptRecordError:
    return CorruptRecordError(f"damaged lz4 data: {reason}")
