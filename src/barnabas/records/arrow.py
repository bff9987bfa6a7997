"""Records as Arrow tables and back, column by column, without a Python object for each record.

pyarrow is an extra (`barnabas[arrow]`) and is imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from barnabas.kernels import (
    NO_TIMESTAMP,
    BatchBuilder,
    Buffer,
    Column,
    Columns,
    check_batch,
    records_to_columns,
)
from barnabas.records.batch import BatchHeader, read_headers
from barnabas.records.bounded_decompression import read_chunks
from barnabas.records.bounds import WHOLE, Bounds
from barnabas.records.builder import finish
from barnabas.records.compression import Codec

if TYPE_CHECKING:
    import pyarrow


def schema() -> pyarrow.Schema:
    """Return the columns of `to_table`."""
    import pyarrow as pa

    header = pa.struct([pa.field("key", pa.string(), nullable=False), ("value", pa.binary())])
    return pa.schema(
        [
            pa.field("offset", pa.int64(), nullable=False),
            pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
            pa.field("key", pa.binary()),
            pa.field("value", pa.binary()),
            pa.field("headers", pa.list_(header), nullable=False),
        ]
    )


def to_table(
    buffer: Buffer,
    *,
    from_offset: int | None = None,
    check_crc: bool = True,
    bounds: Bounds = WHOLE,
) -> pyarrow.Table:
    """Return the records of all whole batches; control batches are left out.

    With `from_offset` records below it are left out too: a fetch may start inside a batch.
    """
    import pyarrow as pa

    layout = schema()
    batches = []
    position = 0
    for header in read_headers(buffer):
        if check_crc:
            check_batch(buffer, position)
        if not header.is_control:
            for columns in _decode(buffer, header, position, bounds):
                batches.append(_record_batch(layout, columns))
        position += header.size
    table = pa.Table.from_batches(batches, layout)
    if from_offset is not None:
        import pyarrow.compute as pc

        table = table.filter(pc.greater_equal(table["offset"], from_offset))
    return table


def from_table(
    table: pyarrow.Table | pyarrow.RecordBatch,
    *,
    codec: Codec | int | str = Codec.NONE,
    level: int | None = None,
    size_max: int = 1_000_000,
    timestamp: int = NO_TIMESTAMP,
) -> Iterator[bytearray]:
    """Yield batches of at most `size_max` bytes before compression (a larger record goes alone).

    The table has a `value` column and may have `key`, `timestamp` (any unit, or int64 milliseconds)
    and `headers`; without timestamps, or if one is null, `timestamp` is used.
    """
    import pyarrow as pa

    builder = BatchBuilder(size_max)
    for part in table.to_batches() if isinstance(table, pa.Table) else [table]:
        append = _appender(part, timestamp)
        taken = 0
        while taken < part.num_rows:
            taken += append(builder, taken)
            if taken < part.num_rows:
                yield finish(builder, codec, level)
                builder = BatchBuilder(size_max)
    if builder.count:
        yield finish(builder, codec, level)


def binary_column(part: pyarrow.RecordBatch, name: str) -> Column | None:
    """Return a column of strings or bytes for the kernels; None if there is no such column."""
    cells = _cells(part, name)
    return None if cells is None else _column(cells)


def time_values(part: pyarrow.RecordBatch, missing: int) -> memoryview | None:
    """Return the timestamps in milliseconds as int64, `missing` where one is null."""
    times = _times(part, missing)
    return None if times is None else _values(times)


def _decode(
    buffer: Buffer, header: BatchHeader, position: int, bounds: Bounds
) -> Iterator[Columns]:
    append_time = header.max_timestamp if header.is_append_time else None
    base = header.base_offset, header.base_timestamp, append_time
    for chunk, count in read_chunks(buffer, position, header, bounds):
        yield records_to_columns(chunk, 0, len(chunk), count, *base)


def _record_batch(layout: Any, columns: Columns) -> Any:
    import pyarrow as pa

    def array(kind: Any, count: int, *buffers: Buffer | None, children: Any = None) -> Any:
        wrapped = [None if buffer is None else pa.py_buffer(buffer) for buffer in buffers]
        return pa.Array.from_buffers(kind, count, wrapped, children=children)

    header_count = len(columns.header_keys[1]) // 4 - 1
    headers = layout.field("headers").type
    names = array(pa.string(), header_count, *columns.header_keys)
    contents = array(pa.binary(), header_count, *columns.header_values)
    pairs = array(headers.value_type, header_count, None, children=[names, contents])
    count = columns.count
    return pa.RecordBatch.from_arrays(
        [
            array(pa.int64(), count, None, columns.offsets),
            array(layout.field("timestamp").type, count, None, columns.timestamps),
            array(pa.binary(), count, *columns.keys),
            array(pa.binary(), count, *columns.values),
            array(headers, count, None, columns.header_offsets, children=[pairs]),
        ],
        schema=layout,
    )


def _appender(part: Any, timestamp: int) -> Callable[[BatchBuilder, int], int]:
    """Return what adds rows of a record batch, from a given one, until a builder is full."""
    times = _times(part, timestamp)
    keys = _cells(part, "key")
    values = _cells(part, "value")
    headers = part.column("headers") if "headers" in part.schema.names else None
    count = part.num_rows
    if headers is not None and headers.null_count < count:
        rows = list(
            zip(
                [timestamp] * count if times is None else times.to_pylist(),
                [None] * count if keys is None else keys.to_pylist(),
                [None] * count if values is None else values.to_pylist(),
                [
                    tuple((header["key"], header["value"]) for header in row or ())
                    for row in headers.to_pylist()
                ],
                strict=True,
            )
        )
        return lambda builder, start: builder.append_many(rows, start)
    time_buffer = None if times is None else _values(times)
    key_column = None if keys is None else _column(keys)
    value_column = None if values is None else _column(values)
    return lambda builder, start: builder.append_columns(
        time_buffer, key_column, value_column, start, count, timestamp
    )


def _times(part: Any, timestamp: int) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if "timestamp" not in part.schema.names:
        return None
    times = part.column("timestamp")
    if pa.types.is_timestamp(times.type):
        times = times.cast(pa.timestamp("ms", tz=times.type.tz), safe=False)
    times = times.cast(pa.int64())
    return pc.fill_null(times, timestamp) if times.null_count else times


def _cells(part: Any, name: str) -> Any:
    import pyarrow as pa

    if name not in part.schema.names:
        return None
    cells = part.column(name)
    return cells if cells.type == pa.binary() else cells.cast(pa.binary())


def _values(array: Any) -> memoryview:
    start = 8 * array.offset
    return memoryview(array.buffers()[1])[start : start + 8 * len(array)]


def _column(array: Any) -> Column:
    """Return the buffers of a binary array, counted from its own first row."""
    import pyarrow as pa

    validity, offsets, data = array.buffers()
    start = 4 * array.offset
    positions = memoryview(offsets)[start : start + 4 * (len(array) + 1)]
    cells: Buffer = b"" if data is None else memoryview(data)
    if validity is None or array.null_count == 0:
        return None, positions, cells
    if array.offset % 8:
        # Validity is counted in bits: an array that does not start at a byte is copied.
        return _column(pa.concat_arrays([array, array.slice(0, 0)]))
    return memoryview(validity)[array.offset // 8 :], positions, cells
