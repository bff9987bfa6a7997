"""Records of one batch as the buffers of Arrow's columns, without an object for each record."""

from __future__ import annotations

from array import array

from barnabas.kernels.contract import Buffer, Columns
from barnabas.kernels.python.column_store import column
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
        column([record.key for record in records]),
        column([record.value for record in records]),
        bytes(positions),
        column([name.encode("utf-8") for name, _ in headers]),
        column([value for _, value in headers]),
    )
