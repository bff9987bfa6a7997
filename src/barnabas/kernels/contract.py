"""What both sets of kernels share: types, constants, error texts.

A kernel reads and writes bytes and nothing else: no clock, no file, no policy. `kernels/python` is
the reference, `kernels/cython` has the same names and answers; for the same input both give the
same result or raise the same CorruptRecordError. A buffer is anything contiguous that the buffer
protocol serves. What is in front of a batch's records is a `BatchHeader`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

from barnabas.kernels.batch_header import HEADER_SIZE, SIZE_MAX
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptRecordError, InvalidValueError

Buffer: TypeAlias = bytes | bytearray | memoryview
MutableBuffer: TypeAlias = bytearray | memoryview
Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
Row: TypeAlias = Sequence[Any]  # timestamp, key, value and optionally headers
Faults: TypeAlias = tuple[tuple[int, "Fault"], ...]  # (index of the record, what is wrong)

SLOT_SIZE = 24  # of compaction's map: a digest of 16 bytes and an offset

NO_TIMESTAMP = -1
TIMESTAMP_MIN = -(2**63)  # pass these two for "no bound"
TIMESTAMP_MAX = 2**63 - 1


class Fault(IntEnum):
    """What can be wrong with one record; `text` describes it."""

    CUT = 1
    VARINT = 2
    LENGTH = 3
    FIELD = 4
    HEADERS = 5
    OFFSET = 6
    KEY = 7
    TIMESTAMP = 8
    LEFTOVER = 9
    COUNT = 10

    @property
    def text(self) -> str:
        return _FAULT_TEXTS[self]


_FAULT_TEXTS = {
    Fault.CUT: "the record runs past the end of its batch",
    Fault.VARINT: "a varint is longer than its type allows",
    Fault.LENGTH: "the record's length does not match its fields",
    Fault.FIELD: "a key or value has a negative length other than -1",
    Fault.HEADERS: "the header count or a header's length is impossible",
    Fault.OFFSET: "the offset deltas of a batch must count 0, 1, 2, …",
    Fault.KEY: "a record of a compacted topic must have a key",
    Fault.TIMESTAMP: "the timestamp is outside the range that the topic accepts",
    Fault.LEFTOVER: "bytes are left over after the last record",
    Fault.COUNT: "the number of records is negative",
}


def corrupt_record(index: int, fault: int) -> CorruptRecordError:
    """Describe a record that cannot be read."""
    return CorruptRecordError(f"record {index} of the batch: {Fault(fault).text}")


def cut_header(available: int) -> CorruptRecordError:
    return CorruptRecordError(f"batch header of {available} bytes, must have {HEADER_SIZE}")


def wrong_magic(magic: int) -> CorruptRecordError:
    return CorruptRecordError(f"magic {magic} in a batch, must be 2", ErrorCode.INVALID_RECORD)


def wrong_size(size: int) -> CorruptRecordError:
    return CorruptRecordError(f"a batch of {size} bytes is smaller than its header ({HEADER_SIZE})")


def untraced(failure: Exception) -> Exception:
    """Return the same failure without its traceback, to be kept and raised again.

    The frames of a traceback keep alive what raised it: both would stay until the garbage collector
    finds them, which fails on views into records that are still in use.
    """
    same = type(failure).__new__(type(failure), *failure.args)
    same.__dict__.update(failure.__dict__)
    return same


def cut_batch(size: int, available: int) -> CorruptRecordError:
    return CorruptRecordError(f"batch of {size} bytes is truncated at {available}")


def wrong_crc(stored: int, computed: int) -> CorruptRecordError:
    return CorruptRecordError(f"batch has CRC {stored:#010x}, computed {computed:#010x}")


def wrong_counts(count: int, last_offset_delta: int) -> CorruptRecordError:
    return CorruptRecordError(
        f"a batch cannot have {count} records and last offset delta {last_offset_delta}",
        ErrorCode.INVALID_RECORD,
    )


def wrong_range(position: int, end: int, size: int) -> ValueError:
    """Describe a call that points outside its buffer: a bug of the caller, not of the bytes."""
    return ValueError(f"range {position}..{end} of a buffer of {size} bytes")


def wrong_offset_delta(offset_delta: int, last: int) -> InvalidValueError:
    return InvalidValueError(f"offset delta {offset_delta} cannot come after {last}")


def record_too_large(size: int) -> InvalidValueError:
    return InvalidValueError(f"a batch cannot be larger than {SIZE_MAX} bytes, this is {size}")


def nothing_appended() -> InvalidValueError:
    return InvalidValueError("a batch without a record needs a last offset delta of its own")


def batch_finished() -> InvalidValueError:
    return InvalidValueError("batch is finished: it takes no more records")


def column_range() -> InvalidValueError:
    return InvalidValueError("a row of the Arrow buffers points outside them")


def cut_marker() -> CorruptRecordError:
    return CorruptRecordError("the key of a control record is shorter than 4 bytes")


def wrong_varint() -> CorruptRecordError:
    return CorruptRecordError("varint is truncated or too long")


Column: TypeAlias = tuple[
    Buffer | None, Buffer, Buffer
]  # Arrow: validity bits, int32 offsets, data


class Columns:
    """Records of one batch as Arrow's buffers: int64 values, and (validity, int32 offsets, data).

    `header_offsets` has count + 1 int32 positions into the header columns.
    """

    __slots__ = (
        "count",
        "header_keys",
        "header_offsets",
        "header_values",
        "keys",
        "offsets",
        "timestamps",
        "values",
    )

    def __init__(
        self,
        count: int,
        offsets: Buffer,
        timestamps: Buffer,
        keys: Column,
        values: Column,
        header_offsets: Buffer,
        header_keys: Column,
        header_values: Column,
    ) -> None:
        self.count = count
        self.offsets = offsets
        self.timestamps = timestamps
        self.keys = keys
        self.values = values
        self.header_offsets = header_offsets
        self.header_keys = header_keys
        self.header_values = header_values


class ConsumerColumns(NamedTuple):
    """Records of many partitions as Arrow's buffers; `topic_indexes` point into `topics`."""

    count: int  # type: ignore[assignment]  # of rows; hides tuple.count
    topics: tuple[str, ...]
    topic_indexes: Buffer
    partitions: Buffer
    offsets: Buffer
    timestamps: Buffer
    timestamp_types: Buffer
    keys: Column
    values: Column
    header_offsets: Buffer
    header_keys: Column
    header_values: Column
