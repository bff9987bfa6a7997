"""What stands in front of records: the bytes of a header, of all formats, and their names.

A record batch (magic 2), big-endian:

      0 baseOffset int64          23 lastOffsetDelta int32   51 producerEpoch int16
      8 batchLength int32         27 baseTimestamp int64     53 baseSequence int32
     12 partitionLeaderEpoch i32  35 maxTimestamp int64      57 recordsCount int32
     16 magic int8                43 producerId int64        61 records
     17 crc uint32, of all bytes from 21 on; 21 attributes int16

An entry of a message set (magic 0 and 1):

      0 offset int64              16 magic int8              18 timestamp int64 (magic 1 only)
      8 messageSize int32         17 attributes int8         18 or 26 key, value
     12 crc uint32, of all bytes from 16 on

Both begin with an offset and the number of bytes that follow these two (the prefix), and have their
magic at 16. `cython/batch_header.pxd` repeats the numbers for the compiled kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptRecordError

BASE_OFFSET_AT = 0
LENGTH_AT = 8
PREFIX_SIZE = 12  # base offset and length: what the length field does not count
LEADER_EPOCH_AT = 12
MAGIC_AT = 16  # in every format
CRC_AT = 17
ATTRIBUTES_AT = 21  # the CRC covers the batch from here on
LAST_OFFSET_DELTA_AT = 23
BASE_TIMESTAMP_AT = 27
MAX_TIMESTAMP_AT = 35
PRODUCER_ID_AT = 43
PRODUCER_EPOCH_AT = 51
BASE_SEQUENCE_AT = 53
COUNT_AT = 57
HEADER_SIZE = 61
SIZE_MAX = 2**31 - 1  # of a batch: its length is an int32

HEADER_FORMAT = ">qiibIhiqqqhii"
UNSEALED_FORMAT = ">qiibI"  # base offset to CRC
SEALED_FORMAT = ">hiqqqhii"  # attributes to count: what the CRC covers of the header

MESSAGE_CRC_AT = 12
MESSAGE_ATTRIBUTES_AT = 17
MESSAGE_TIMESTAMP_AT = 18
MESSAGE_FORMAT = ">qiIbb"  # offset, size, crc, magic, attributes
MESSAGE_MIN = 26
"""Bytes of the smallest entry of magic 0 or 1, as many as must be seen to describe one."""

BATCH_MAGIC = 2
"""The magic of batches; entries of message sets have 0 or 1."""

CODEC_MASK = 0x07
APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40  # the base timestamp is when tombstones and markers may go
SPECIAL_MASK = CODEC_MASK | TRANSACTIONAL_BIT | CONTROL_BIT  # what compaction must look at closer


def offset_at(buffer: bytes | bytearray | memoryview, position: int = 0) -> int:
    """Return the offset that begins the entry at position, of any format."""
    return int.from_bytes(buffer[position : position + LENGTH_AT], "big", signed=True)


def size_at(buffer: bytes | bytearray | memoryview, position: int = 0) -> int:
    """Return how many bytes the entry at position, of any format, says that it takes."""
    length = buffer[position + LENGTH_AT : position + PREFIX_SIZE]
    return int.from_bytes(length, "big", signed=True) + PREFIX_SIZE


class Codec(IntEnum):
    """A codec by its number in the attributes of a batch."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def of(cls, codec: Codec | int | str) -> Codec:
        """Return the codec for a number off the wire or a name such as "lz4"."""
        try:
            return cls[codec.upper()] if isinstance(codec, str) else cls(codec)
        except (KeyError, ValueError):
            raise CorruptRecordError(
                f"compression codec {codec}: must be 0 to 4 (none, gzip, snappy, lz4, zstd)",
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            ) from None


@dataclass(slots=True, unsafe_hash=True)
class BatchHeader:
    """The header of a batch, as kernels return it; `size` is the whole batch in bytes.

    An entry of an older format has one, too: what its format lacks is -1
    (`records/message_set.py`).

    A slot is read faster than the field of a named tuple, which the Produce path would show. The
    compiled kernel fills the slots in place (`cython/batch.pyx`). mypy holds the fields fixed: a
    frozen class would take four times as long to make, in the Python kernel.
    """

    base_offset: Final[int]
    size: Final[int]
    leader_epoch: Final[int]
    magic: Final[int]
    crc: Final[int]
    attributes: Final[int]
    last_offset_delta: Final[int]
    base_timestamp: Final[int]
    max_timestamp: Final[int]
    producer_id: Final[int]
    producer_epoch: Final[int]
    base_sequence: Final[int]
    count: Final[int]  # of records

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, which wraps to 0 after 2³¹ - 1; -1 if there is none."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def codec(self) -> Codec:
        return Codec.of(self.attributes & CODEC_MASK)

    @property
    def is_compressed(self) -> bool:
        return self.attributes & CODEC_MASK != 0

    @property
    def is_append_time(self) -> bool:
        """Whether the broker's clock made the timestamps (LogAppendTime), not the producer's."""
        return self.attributes & APPEND_TIME_BIT != 0

    @property
    def timestamp_type(self) -> int:
        """0 for CreateTime, 1 for LogAppendTime."""
        return 1 if self.attributes & APPEND_TIME_BIT else 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop the tombstones and markers of this batch, if it was set."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def is_message(self) -> bool:
        """Whether this is an entry of a message set (magic 0 or 1), not a batch."""
        return self.magic < BATCH_MAGIC

    def starting_at(self, base_offset: int) -> BatchHeader:
        """Return the header with another base offset and the same last one, the lesser of both."""
        last_offset = self.base_offset + self.last_offset_delta
        base_offset = min(base_offset, last_offset)
        delta = last_offset - base_offset
        return replace(self, base_offset=base_offset, last_offset_delta=delta)
