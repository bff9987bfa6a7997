"""Records of one batch as the buffers of Arrow's columns, without an object for each record."""

from __future__ import annotations

from array import array

from barnabas.kernels.contract import Buffer, Column, Columns
from barnabas.kernels.python.reader import read_records


def records_to_columns(
    buffer: Buffer,
    start: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None = None,
) -> Columns:
    """Decode uncompressed records into columns."""
    records = list(
        read_records(buffer, start, end, count, base_offset, base_timestamp, append_time)
    )
    positions = array("i", [0])
    for record in records:
        positions.append(positions[-1] + len(record.headers))
    headers = [header for record in records for header in record.headers]
    return Columns(
        len(records),
        bytes(array("q", [record.offset for record in records])),
        bytes(array("q", [record.timestamp for record in records])),
        _column([record.key for record in records]),
        _column([record.value for record in records]),
        bytes(positions),
        _column([name.encode("utf-8") for name, _ in headers]),
        _column([value for _, value in headers]),
    )


def _column(cells: list[bytes | None]) -> Column:
    """Return validity bits (None when no cell is null), int32 offsets and data."""
    positions = array("i", [0])
    validity = bytearray((len(cells) + 7) // 8)
    for index, cell in enumerate(cells):
        positions.append(positions[-1] + len(cell or b""))
        if cell is not None:
            validity[index >> 3] |= 1 << (index & 7)
    data = b"".join(cell for cell in cells if cell is not None)
    return None if None not in cells else bytes(validity), bytes(positions), data
