"""librdkafka's ways to choose a partition by a record's key."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Mapping
from types import MappingProxyType

from barnabas.kernels import murmur2 as _murmur2


def murmur2(key: bytes, partition_count: int) -> int:
    """Return the partition that Java's clients choose."""
    return (_murmur2(key) & 0x7FFFFFFF) % partition_count


def consistent(key: bytes, partition_count: int) -> int:
    """Return the partition by the key's CRC-32."""
    return zlib.crc32(key) % partition_count


def fnv1a(key: bytes, partition_count: int) -> int:
    """Return the partition that Sarama's clients choose."""
    value = 0x811C9DC5
    for byte in key:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    signed = value - (1 << 32) if value & 0x80000000 else value
    return abs(signed) % partition_count


_HASHES: Mapping[str, Callable[[bytes, int], int]] = MappingProxyType(
    {"consistent": consistent, "murmur2": murmur2, "fnv1a": fnv1a}
)


def choice(name: str) -> Callable[[bytes | None, int], int | None]:
    """Return what chooses a partition for a key; None leaves it to the batches."""
    if name == "random":
        return lambda key, count: None
    function = _HASHES[name.removesuffix("_random")]
    if not name.endswith("_random"):
        return lambda key, count: function(key or b"", count)
    if name == "consistent_random":  # an empty key counts as none
        return lambda key, count: (
            None if key is None else function(key, count) if key else random.randrange(count)
        )
    return lambda key, count: None if key is None else function(key, count)
