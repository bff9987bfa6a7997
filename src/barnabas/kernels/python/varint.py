"""Variable-length numbers: seven bits a byte, lowest first; signed ones are zigzag-coded before.

A decoder takes at most five bytes (ten for a long); bits above the type's width are dropped, as
Java does.
"""

from __future__ import annotations

from barnabas.kernels.contract import Buffer, wrong_varint


def encode_unsigned_varint(value: int, /) -> bytes:
    """Encode 0 ≤ value < 2³²."""
    if not 0 <= value < 1 << 32:
        raise OverflowError(f"{value} is not an unsigned 32-bit number")
    return _encode(value)


def encode_varint(value: int, /) -> bytes:
    """Encode a signed 32-bit number."""
    if not -(1 << 31) <= value < 1 << 31:
        raise OverflowError(f"{value} is not a signed 32-bit number")
    return _encode(value << 1 if value >= 0 else (-value << 1) - 1)


def encode_varlong(value: int, /) -> bytes:
    """Encode a signed 64-bit number."""
    if not -(1 << 63) <= value < 1 << 63:
        raise OverflowError(f"{value} is not a signed 64-bit number")
    return _encode(value << 1 if value >= 0 else (-value << 1) - 1)


def decode_unsigned_varint(buffer: Buffer, position: int = 0, /) -> tuple[int, int]:
    """Return the number at position, and the position after it."""
    value, position = _decode(buffer, position, 5)
    return value & 0xFFFFFFFF, position


def decode_varint(buffer: Buffer, position: int = 0, /) -> tuple[int, int]:
    """Return the signed number at position, and the position after it."""
    value, position = _decode(buffer, position, 5)
    value &= 0xFFFFFFFF
    return value >> 1 ^ -(value & 1), position


def decode_varlong(buffer: Buffer, position: int = 0, /) -> tuple[int, int]:
    """Return the signed 64-bit number at position, and the position after it."""
    value, position = _decode(buffer, position, 10)
    value &= 0xFFFFFFFFFFFFFFFF
    return value >> 1 ^ -(value & 1), position


def _encode(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _decode(buffer: Buffer, position: int, size_max: int) -> tuple[int, int]:
    if position < 0:
        raise wrong_varint()
    value = 0
    for index, byte in enumerate(buffer[position : position + size_max]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, position + index + 1
    raise wrong_varint()
