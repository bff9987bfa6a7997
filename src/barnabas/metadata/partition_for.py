"""Which partition of a coordinator's topic a group or a transactional id belongs to.

All clients and brokers must agree on it, so the hash is that of Java strings.
"""

from __future__ import annotations

import struct


def java_hash(text: str) -> int:
    """Return Java's `String.hashCode`: over UTF-16 units, wrapped to a signed 32-bit number."""
    units = text.encode("utf-16-le", "surrogatepass")
    value = 0
    for (unit,) in struct.iter_unpack("<H", units):
        value = (31 * value + unit) & 0xFFFF_FFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


def partition_for(identifier: str, partition_count: int) -> int:
    """Return the partition of an id; the one hash without an absolute value counts as 0."""
    value = java_hash(identifier)
    return (0 if value == -0x8000_0000 else abs(value)) % partition_count
