"""CRC-32C (Castagnoli), the checksum of record batches, one table step per byte."""

from __future__ import annotations

from barnabas.kernels.contract import Buffer

POLYNOMIAL = 0x82F63B78  # reflected


def _table_entry(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ (POLYNOMIAL if byte & 1 else 0)
    return byte


TABLE = tuple(_table_entry(byte) for byte in range(256))


def crc32c(data: Buffer, value: int = 0, /) -> int:
    """Return the CRC-32C of data, continued from `value`, the CRC of what came before."""
    table = TABLE
    crc = value ^ 0xFFFFFFFF
    for byte in bytes(data):
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF
