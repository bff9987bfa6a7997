"""Hot loops, written twice: `python/` is the reference, `cython/` its compiled twin.

The compiled kernels are taken when they are there, else the Python ones. BARNABAS_KERNELS=python
or cython forces the choice, and importing fails if it cannot be kept. `NAME` says which were
chosen.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from barnabas.kernels.batch_header import (
    APPEND_TIME_BIT,
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    SPECIAL_MASK,
    TRANSACTIONAL_BIT,
    BatchHeader,
)
from barnabas.kernels.contract import (
    NO_TIMESTAMP,
    SLOT_SIZE,
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
    Buffer,
    Column,
    Columns,
    ConsumerColumns,
    Fault,
    Faults,
    Headers,
    Kernels,
    MutableBuffer,
    Row,
)


def _choose(forced: str | None) -> tuple[str, Kernels]:
    """Return the name and the module of the kernels to use."""
    if forced not in (None, "", "python", "cython"):
        raise ImportError(f"BARNABAS_KERNELS={forced}: expected python or cython")
    if forced != "python":
        try:
            from barnabas.kernels import cython
        except ModuleNotFoundError as missing:
            # A kernel that was not compiled lets the choice fall back; one that is broken does not.
            if not (missing.name or "").startswith("barnabas.kernels.cython."):
                raise
            if forced:
                raise ImportError(
                    f"BARNABAS_KERNELS=cython, but {missing.name} is not compiled "
                    "(python setup.py build_ext --inplace)"
                ) from missing
        else:
            return "cython", cython
    from barnabas.kernels import python

    return "python", python


NAME, _chosen = _choose(os.environ.get("BARNABAS_KERNELS"))

if TYPE_CHECKING:
    from barnabas.kernels.python import (
        Accumulator,
        BatchBuilder,
        ColumnStore,
        ConsumerRecord,
        PendingBatch,
        PendingPartition,
        Record,
        RecordCursor,
        RecordFuture,
        RecordReader,
        Segment,
        assign_offsets,
        check_batch,
        crc32c,
        decode_unsigned_varint,
        decode_varint,
        decode_varlong,
        encode_unsigned_varint,
        encode_varint,
        encode_varlong,
        filter_batches,
        filter_records,
        find_offset,
        inspect_batch,
        map_batches,
        map_records,
        murmur2,
        read_records,
        rebuild_batch,
        records_to_columns,
        scan_batch,
        scan_batches,
        split_records,
        stamp_producer,
        stamp_timestamp,
        validate_records,
    )
else:
    Accumulator = _chosen.Accumulator
    BatchBuilder = _chosen.BatchBuilder
    PendingBatch = _chosen.PendingBatch
    PendingPartition = _chosen.PendingPartition
    ColumnStore = _chosen.ColumnStore
    ConsumerRecord = _chosen.ConsumerRecord
    Record = _chosen.Record
    RecordCursor = _chosen.RecordCursor
    RecordFuture = _chosen.RecordFuture
    RecordReader = _chosen.RecordReader
    Segment = _chosen.Segment
    assign_offsets = _chosen.assign_offsets
    check_batch = _chosen.check_batch
    crc32c = _chosen.crc32c
    decode_unsigned_varint = _chosen.decode_unsigned_varint
    decode_varint = _chosen.decode_varint
    decode_varlong = _chosen.decode_varlong
    encode_unsigned_varint = _chosen.encode_unsigned_varint
    encode_varint = _chosen.encode_varint
    encode_varlong = _chosen.encode_varlong
    filter_batches = _chosen.filter_batches
    filter_records = _chosen.filter_records
    find_offset = _chosen.find_offset
    inspect_batch = _chosen.inspect_batch
    map_batches = _chosen.map_batches
    map_records = _chosen.map_records
    murmur2 = _chosen.murmur2
    read_records = _chosen.read_records
    rebuild_batch = _chosen.rebuild_batch
    records_to_columns = _chosen.records_to_columns
    scan_batch = _chosen.scan_batch
    scan_batches = _chosen.scan_batches
    split_records = _chosen.split_records
    stamp_producer = _chosen.stamp_producer
    stamp_timestamp = _chosen.stamp_timestamp
    validate_records = _chosen.validate_records

__all__ = [
    "APPEND_TIME_BIT",
    "CODEC_MASK",
    "CONTROL_BIT",
    "DELETE_HORIZON_BIT",
    "HEADER_SIZE",
    "NAME",
    "NO_TIMESTAMP",
    "SLOT_SIZE",
    "SPECIAL_MASK",
    "TIMESTAMP_MAX",
    "TIMESTAMP_MIN",
    "TRANSACTIONAL_BIT",
    "Accumulator",
    "BatchBuilder",
    "BatchHeader",
    "Buffer",
    "Column",
    "ColumnStore",
    "Columns",
    "ConsumerColumns",
    "ConsumerRecord",
    "Fault",
    "Faults",
    "Headers",
    "MutableBuffer",
    "PendingBatch",
    "PendingPartition",
    "Record",
    "RecordCursor",
    "RecordFuture",
    "RecordReader",
    "Row",
    "Segment",
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
