"""The compiled kernels: the names and answers of the reference, many times faster."""

# ruff: noqa: F401  the names are those of the Python twin, and typed there

from barnabas.kernels.cython.arrow import records_to_columns
from barnabas.kernels.cython.batch import (
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
from barnabas.kernels.cython.builder import BatchBuilder
from barnabas.kernels.cython.column_store import ColumnStore
from barnabas.kernels.cython.compaction import (
    filter_batches,
    filter_records,
    find_offset,
    map_batches,
    map_records,
    rebuild_batch,
)
from barnabas.kernels.cython.consumer_record import ConsumerRecord
from barnabas.kernels.cython.crc32c import crc32c
from barnabas.kernels.cython.cursor import RecordCursor
from barnabas.kernels.cython.murmur2 import murmur2
from barnabas.kernels.cython.reader import Record, RecordReader, read_records
from barnabas.kernels.cython.varint import (
    decode_unsigned_varint,
    decode_varint,
    decode_varlong,
    encode_unsigned_varint,
    encode_varint,
    encode_varlong,
)
