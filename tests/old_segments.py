"""Segments of the formats before batches (magic 0 and 1), as brokers of those times stored them.

The messages are written by aiokafka's builder; what a broker then changed is done here: the
offset of a wrapper is that of its last message, and from magic 1 on its timestamp is the greatest
inside. lz4 in magic 0 has the wrong header checksum that clients of the time wrote.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

from aiokafka.record.legacy_records import LegacyRecordBatchBuilder

from barnabas.records.builder import build_batch
from barnabas.records.compression import compress

NOW = 1_700_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4")
PER_ENTRY = 5


class Row(NamedTuple):
    """What a consumer must see; magic 0 has no timestamps."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def make_rows(base: int, count: int, magic: int, keys: int = 7) -> list[Row]:
    """Rows with `keys` different keys; every ninth is a tombstone."""
    return [
        Row(
            offset,
            NOW + offset if magic else -1,
            b"key %d" % (offset % keys),
            None if offset % 9 == 8 else b"value %d " % offset + b"x" * (offset % 40),
        )
        for offset in range(base, base + count)
    ]


def old_entries(rows: list[Row], magic: int, codec: str) -> bytes:
    """The rows as one wrapper, or as messages one after the other without a codec."""
    number = CODECS.index(codec)
    broken_lz4 = magic == 0 and codec == "lz4"
    # Inside a wrapper of magic 1 offsets are relative.
    inside = rows[0].offset if magic and number else 0
    builder = LegacyRecordBatchBuilder(magic, 0 if broken_lz4 else number, 1 << 30)
    for row in rows:
        builder.append(row.offset - inside, row.timestamp, row.key, row.value)
    data = bytearray(builder.build())
    if broken_lz4:
        data = _wrapper_of_lz4(bytes(data))
    if number:
        data[:8] = rows[-1].offset.to_bytes(8, "big")
        if magic:
            data[18:26] = max(row.timestamp for row in rows).to_bytes(8, "big", signed=True)
            data[12:16] = zlib.crc32(data[16:]).to_bytes(4, "big")
    return bytes(data)


def old_segment(base: int, magic: int, codec: str, entries: int = 6) -> tuple[bytes, list[Row]]:
    """A segment of so many wrappers, each of five messages."""
    data, rows = b"", []
    for number in range(entries):
        some = make_rows(base + number * PER_ENTRY, PER_ENTRY, magic)
        data += old_entries(some, magic, codec)
        rows += some
    return data, rows


def new_segment(base: int, codec: str, entries: int = 6) -> tuple[bytes, list[Row]]:
    """A segment of batches of magic 2."""
    data, rows = b"", []
    for number in range(entries):
        some = make_rows(base + number * PER_ENTRY, PER_ENTRY, 2)
        plain = [(row.timestamp, row.key, row.value) for row in some]
        data += build_batch(plain, codec, base_offset=some[0].offset, leader_epoch=0)
        rows += some
    return data, rows


def every_format(
    *, lz4_of_magic_0: bool = True, mixed_segment: bool = True
) -> tuple[dict[int, bytes], list[Row]]:
    """Segments by their base offsets: every magic with every codec, and one with all formats."""
    segments: dict[int, bytes] = {}
    rows: list[Row] = []

    def add(data: bytes, some: list[Row]) -> None:
        segments[some[0].offset] = data
        rows.extend(some)

    def end() -> int:
        return rows[-1].offset + 1 if rows else 0

    for magic in (0, 1):
        for codec in CODECS:
            if magic or codec != "lz4" or lz4_of_magic_0:
                add(*old_segment(end(), magic, codec))
    if mixed_segment:
        mixed, some = b"", []
        for magic, codec in ((0, "gzip"), (1, "snappy"), (2, "zstd"), (0, "none"), (2, "none")):
            base = end() + len(some)
            made = old_segment(base, magic, codec, 2) if magic < 2 else new_segment(base, codec, 2)
            mixed += made[0]
            some += made[1]
        add(mixed, some)
    for codec in (*CODECS, "zstd"):
        add(*new_segment(end(), codec))
    return segments, rows


def segment_name(base: int) -> str:
    return f"{base:020d}.log"


def _wrapper_of_lz4(content: bytes) -> bytearray:
    packed = bytearray(compress("lz4", content))
    packed[6] = _xxh32(bytes(packed[:6])) >> 8 & 0xFF  # over the frame's magic, too
    body = b"\0\3" + b"\xff" * 4 + len(packed).to_bytes(4, "big") + packed
    crc = zlib.crc32(body).to_bytes(4, "big")
    return bytearray(bytes(8) + (4 + len(body)).to_bytes(4, "big") + crc + body)


def _xxh32(data: bytes) -> int:
    """xxHash of less than 16 bytes, seed 0."""
    assert len(data) < 16
    mask = 0xFFFFFFFF

    def rotate(value: int, by: int) -> int:
        return (value << by | value >> 32 - by) & mask

    result = 374761393 + len(data)
    for at in range(0, len(data) - 3, 4):
        word = int.from_bytes(data[at : at + 4], "little")
        result = rotate((result + word * 3266489917) & mask, 17) * 668265263 & mask
    for byte in data[len(data) & ~3 :]:
        result = rotate((result + byte * 374761393) & mask, 11) * 2654435761 & mask
    for shift, prime in ((15, 2246822519), (13, 3266489917)):
        result = (result ^ result >> shift) * prime & mask
    return result ^ result >> 16
