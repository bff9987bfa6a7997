"""Polled records as an Arrow record batch, built from the columns that the kernel filled.

pyarrow is an extra (`barnabas[arrow]`) and is imported on first use. A batch keeps the memory of
its columns; when it is no longer referenced, the memory is reused for a later one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.kernels import Buffer, ConsumerColumns

if TYPE_CHECKING:
    import pyarrow


def schema() -> pyarrow.Schema:
    """Return the columns of a polled batch."""
    import pyarrow as pa

    header = pa.struct([pa.field("key", pa.string(), nullable=False), ("value", pa.binary())])
    return pa.schema(
        [
            pa.field("topic", pa.dictionary(pa.int32(), pa.string()), nullable=False),
            pa.field("partition", pa.int32(), nullable=False),
            pa.field("offset", pa.int64(), nullable=False),
            pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
            pa.field("timestamp_type", pa.int8(), nullable=False),
            pa.field("key", pa.binary()),
            pa.field("value", pa.binary()),
            pa.field("headers", pa.list_(header), nullable=False),
        ]
    )


def to_record_batch(columns: ConsumerColumns, layout: pyarrow.Schema) -> pyarrow.RecordBatch:
    """Wrap columns without copying them."""
    import pyarrow as pa

    def array(kind: Any, count: int, *buffers: Buffer | None, children: Any = None) -> Any:
        wrapped = [None if buffer is None else pa.py_buffer(buffer) for buffer in buffers]
        # Without validity bits nothing is null, and pyarrow need not count.
        nulls = 0 if buffers[0] is None else -1
        return pa.Array.from_buffers(kind, count, wrapped, null_count=nulls, children=children)

    count = columns.count
    header_count = len(columns.header_keys[1]) // 4 - 1
    headers = layout.field("headers").type
    names = array(pa.string(), header_count, *columns.header_keys)
    contents = array(pa.binary(), header_count, *columns.header_values)
    pairs = array(headers.value_type, header_count, None, children=[names, contents])
    topics = pa.DictionaryArray.from_arrays(
        array(pa.int32(), count, None, columns.topic_indexes),
        pa.array(columns.topics, pa.string()),
        safe=False,  # the kernel wrote the indexes
    )
    return pa.RecordBatch.from_arrays(
        [
            topics,
            array(pa.int32(), count, None, columns.partitions),
            array(pa.int64(), count, None, columns.offsets),
            array(layout.field("timestamp").type, count, None, columns.timestamps),
            array(pa.int8(), count, None, columns.timestamp_types),
            array(pa.binary(), count, *columns.keys),
            array(pa.binary(), count, *columns.values),
            array(headers, count, None, columns.header_offsets, children=[pairs]),
        ],
        schema=layout,
    )
