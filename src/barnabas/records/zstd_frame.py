"""Zstandard frames, walked before they are unpacked (RFC 8878).

    magic 28 b5 2f fd | descriptor | [window] | [dictionary id] | [content size]
    | (block header, 3 bytes LE: last 1 bit, type 2 bits, size 21 bits | block)* | [checksum 4]

Skippable frames (magic 5x 2a 4d 18, then a size) hold nothing and are skipped.
"""

from __future__ import annotations

from barnabas.model.errors import CorruptRecordError

MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"
_BLOCK_SIZE_MAX = 128 * 1024  # whatever the window
_RAW, _REPEATED, _COMPRESSED = 0, 1, 2


def walk(data: memoryview) -> list[tuple[int, int, int]]:
    """Return (start, end, upper bound of the output) of each frame that holds data."""
    frames = []
    position = 0
    while position < len(data):
        start = position
        magic = bytes(data[start : start + 4])
        if magic[1:] == _SKIPPABLE and magic[0] >> 4 == 5:
            position = start + 8 + int.from_bytes(data[start + 4 : start + 8], "little")
        elif magic == MAGIC:
            position, bound = _walk_frame(data, start)
            frames.append((start, position, bound))
        else:
            raise _damaged("a frame has the wrong magic")
        if position > len(data):
            raise _damaged("a frame is truncated")
    if not frames:
        raise _damaged("there is no frame")
    return frames


def window_size(data: memoryview, start: int) -> int:
    """Return how many bytes a decoder of the frame at a position must keep, as its header says."""
    descriptor = data[start + 4]
    if not descriptor & 0x20:
        base = 1 << 10 + (data[start + 5] >> 3)
        return base + (base >> 3) * (data[start + 5] & 7)
    size_at = start + 5 + (0, 1, 2, 4)[descriptor & 3]
    length = (1, 2, 4, 8)[descriptor >> 6]
    size = int.from_bytes(data[size_at : size_at + length], "little")
    return size + 256 if length == 2 else size


def _walk_frame(data: memoryview, start: int) -> tuple[int, int]:
    """Return the end of the frame and the most that its blocks can unpack to.

    A stated content size lowers the bound; the decoder refuses a frame that does not keep to it.
    """
    if start + 5 > len(data):
        raise _damaged("a frame header is truncated")
    descriptor = data[start + 4]
    single_segment = descriptor & 0x20
    position = start + 5 + (0 if single_segment else 1) + (0, 1, 2, 4)[descriptor & 3]
    size_at = position
    position += (1 if single_segment else 0, 2, 4, 8)[descriptor >> 6]
    content_size = int.from_bytes(data[size_at:position], "little")
    if position - size_at == 2:
        content_size += 256
    has_content_size = position > size_at
    bound = last = 0
    while not last:
        if position + 3 > len(data):
            raise _damaged("a frame is truncated")
        header = int.from_bytes(data[position : position + 3], "little")
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        position += 3 + (1 if kind == _REPEATED else size)
        if kind == _COMPRESSED:
            bound += _BLOCK_SIZE_MAX
        elif kind in (_RAW, _REPEATED):
            bound += size
        else:
            raise _damaged("a block has the reserved type")
    if has_content_size:
        bound = min(bound, content_size)
    return position + (4 if descriptor & 0x04 else 0), bound


def _damaged(reason: str) -> CorruptRecordError:
    return CorruptRecordError(f"damaged zstd data: {reason}")
