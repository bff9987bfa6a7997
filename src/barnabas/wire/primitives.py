"""What compiled encoders and decoders call: the few helpers that are not worth inlining.

`Malformed` is their one exception; the codec turns it into a protocol error that names the message,
the version and the field.
"""

from __future__ import annotations

from typing import Final, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

FIXED: Final[dict[str, tuple[str, int]]] = {
    "bool": ("?", 1),
    "int8": ("b", 1),
    "int16": ("h", 2),
    "int32": ("i", 4),
    "int64": ("q", 8),
    "uint16": ("H", 2),
    "uint32": ("I", 4),
    "float64": ("d", 8),
    "uuid": ("16s", 16),
}
"""Primitives of fixed size: their `struct` letter, and their size in bytes."""

SMALL_UVARINTS: Final = tuple(bytes([value]) for value in range(128))


class Malformed(Exception):
    """A value that cannot be read or written; says what is wrong, not where."""


def uvarint(value: int) -> bytes:
    """Encode an unsigned varint."""
    out = bytearray()
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def long_uvarint(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Read an unsigned varint after its first byte; return it and the position after it."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            if value > 0xFFFF_FFFF:
                break
            return value, position
    raise Malformed("an unsigned varint has more than 32 bits")


def skip_tags(buffer: Buffer, position: int, count: int) -> int:
    """Skip unknown tagged fields; return the position after them."""
    end = len(buffer)
    last = -1
    for _ in range(count):
        tag = buffer[position]
        position += 1
        if tag > 127:
            tag, position = long_uvarint(buffer, position, tag)
        if tag <= last:
            raise Malformed(f"tag {tag} comes after tag {last}")
        last = tag
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_uvarint(buffer, position, size)
        position += size
        if position > end:
            raise Malformed(f"tag {tag} of {size} bytes does not fit")
    return position
