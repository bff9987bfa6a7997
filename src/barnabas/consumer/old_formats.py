"""Fetched records of the formats before batches (magic 0 and 1), as batches of magic 2.

Old segments are served as they are stored. They are rare, so they are converted on arrival: every
reader then knows one format alone. Offsets and timestamps stay.
"""

from __future__ import annotations

from barnabas.kernels import BatchBuilder, Buffer
from barnabas.records.batch import magic_of
from barnabas.records.bounds import RECORD_MAX
from barnabas.records.legacy import iterate_messages


def to_batches(buffer: Buffer, unpacked_max: int = RECORD_MAX) -> Buffer:
    """Return the same bytes, or batches of what older formats are at their start.

    Compressed messages may unpack to `unpacked_max` bytes; they are held as a whole.
    """
    if (magic_of(buffer) or 0) >= 2 or len(buffer) <= _PREFIX_SIZE:
        return buffer
    end = _end_of_old(buffer)
    converted = bytearray()
    for record in iterate_messages(memoryview(buffer)[:end], limit=unpacked_max):
        builder = BatchBuilder()
        builder.append(record.timestamp, record.key, record.value, record.headers)
        converted += builder.finish(base_offset=record.offset)
    return converted + bytes(memoryview(buffer)[end:])


_PREFIX_SIZE = 16  # up to where the format is told


def _end_of_old(buffer: Buffer) -> int:
    """Return where the first batch of magic 2 begins, or a cut entry, or the end."""
    position = 0
    while (magic := magic_of(buffer, position)) is not None and magic < 2:
        size = int.from_bytes(buffer[position + 8 : position + 12], "big", signed=True)
        if size < 0 or position + 12 + size > len(buffer):
            break
        position += 12 + size
    return position
