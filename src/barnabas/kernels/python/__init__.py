"""The reference kernels: short, obvious, always importable."""

from barnabas.kernels.python.arrow import records_to_columns
from barnabas.kernels.python.batch import (
    assign_offsets,
    check_batch,
    inspect_batch,
    scan_batch,
    scan_batches,
    split_records,
    stamp_producer,
    stamp_timestamp,
    validate_records,
)
from barnabas.kernels.python.builder import BatchBuilder
from barnabas.kernels.python.column_store import ColumnStore
from barnabas.kernels.python.compaction import (
    filter_batches,
    filter_records,
    find_offset,
    map_batches,
    map_records,
    rebuild_batch,
)
from barnabas.kernels.python.consumer_record import ConsumerRecord
from barnabas.kernels.python.crc32c import crc32c
from barnabas.kernels.python.cursor import RecordCursor
from barnabas.kernels.python.murmur2 import murmur2
from barnabas.kernels.python.reader import Record, RecordReader, read_records
from barnabas.kernels.python.varint import (
    decode_unsigned_varint,
    decode_varint,
    decode_varlong,
    encode_unsigned_varint,
    encode_varint,
    encode_varlong,
)

__all__ = [
    "BatchBuilder",
    "ColumnStore",
    "ConsumerRecord",
    "Record",
    "RecordCursor",
    "RecordReader",
    "assign_offsets",
    "check_batch",
    "crc32c",
    "decode_unsigned_varint",
    "decode_varint",
    "decode_varlong",
    "encode_unsigned_varint",
    "encode_varint",
    "encode_varlong",
    "filter_batches",
    "filter_records",
    "find_offset",
    "inspect_batch",
    "map_batches",
    "map_records",
    "murmur2",
    "read_records",
    "rebuild_batch",
    "records_to_columns",
    "scan_batch",
    "scan_batches",
    "split_records",
    "stamp_producer",
    "stamp_timestamp",
    "validate_records",
]
