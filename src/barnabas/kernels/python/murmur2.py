"""murmur2 as Kafka's partitioners use it: a key has the same partition in every client."""

from __future__ import annotations

from barnabas.kernels.contract import Buffer

SEED = 0x9747B28C
MULTIPLIER = 0x5BD1E995
MASK = 0xFFFFFFFF


def murmur2(data: Buffer, /) -> int:
    """Return the hash as a signed 32-bit number, as Java has it."""
    data = bytes(data)
    hashed = SEED ^ len(data)
    whole = len(data) & ~3
    for index in range(0, whole, 4):
        word = int.from_bytes(data[index : index + 4], "little") * MULTIPLIER & MASK
        word = (word ^ word >> 24) * MULTIPLIER & MASK
        hashed = (hashed * MULTIPLIER & MASK) ^ word
    if whole < len(data):
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * MULTIPLIER & MASK
    hashed = (hashed ^ hashed >> 13) * MULTIPLIER & MASK
    hashed ^= hashed >> 15
    return hashed - (1 << 32) if hashed & 0x80000000 else hashed
