"""What a leader checks before it appends a batch, in the order of the errors.

The common batch (uncompressed or with the topic's codec, create time) costs one kernel call and is
appended as it came. Only a batch that must change (another codec, append time, a wrong max
timestamp, old format) is stamped or rebuilt. Nothing here touches the log: the result is the
bytes to append.

An append of a leader is always one batch.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from barnabas.config.topic import TopicOptions
from barnabas.kernels import crc32c, inspect_batch, scan_batch, stamp_timestamp, validate_records
from barnabas.kernels.batch_header import (
    APPEND_TIME_BIT,
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL_BIT,
    MAGIC_AT,
    PREFIX_SIZE,
    BatchHeader,
)
from barnabas.kernels.contract import (
    NO_TIMESTAMP,
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
    Buffer,
    Fault,
    Faults,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptRecordError, RequestError
from barnabas.records.batch import read_batch
from barnabas.records.bounded_decompression import read_chunks
from barnabas.records.bounds import Bounds, whole_too_large
from barnabas.records.builder import build_batch, recompress
from barnabas.records.compression import Codec, TooLargeError
from barnabas.records.legacy import up_convert

Origin: TypeAlias = Literal["client", "coordinator"]

NEWEST_VERSION = 2**15 - 1
_FIRST_VERSION_WITH_BATCHES = 3
_FIRST_VERSION_WITH_ZSTD = 7
_FAULTS_MAX = 10_000
"""How many rejected records a response names: a few bytes may unpack to millions."""
_WRONG_DELTAS = "its offset deltas do not count 0, 1, 2, …"


class InvalidRecords(RequestError):
    """A batch rejected for some of its records: (index in the batch, what is wrong) of each."""

    def __init__(self, code: ErrorCode, record_errors: tuple[tuple[int, str], ...]) -> None:
        super().__init__(code, "one or more records have been rejected")
        self.record_errors = record_errors

    def count(self, fault: Fault) -> int:
        """Return how many records have a fault, as far as they are named."""
        return sum(text == fault.text for _, text in self.record_errors)


class InvalidBatch(RequestError):
    """A batch whose header is impossible: its magic, or its offsets and sequence numbers."""

    def __init__(self, message: str, *, wrong_magic: bool = False) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, message)
        self.wrong_magic = wrong_magic


class Rules:
    """Which batches a topic accepts, and how it stores them."""

    __slots__ = (
        "after_ms_max",
        "append_time",
        "before_ms_max",
        "bounded",
        "bounds",
        "codec",
        "converted",
        "level",
        "message_bytes_max",
        "require_key",
        "segment_bytes",
    )

    def __init__(self, options: TopicOptions) -> None:
        self.message_bytes_max = options.max_message_bytes
        self.segment_bytes = options.segment_bytes
        self.bounds = stored_bounds(options)._replace(
            batch=max(options.barnabas_unpacked_batch_max_bytes, options.max_message_bytes)
        )
        self.append_time = options.message_timestamp_type == "LogAppendTime"
        self.before_ms_max = options.message_timestamp_before_max_ms
        self.after_ms_max = options.message_timestamp_after_max_ms
        self.bounded = not self.append_time and (
            self.before_ms_max < TIMESTAMP_MAX or self.after_ms_max < TIMESTAMP_MAX
        )
        self.require_key = options.compact
        self.converted = 0
        """How many records were converted or repacked, until the log takes the number."""
        name = options.compression_type
        # None: keep what the producer chose.
        self.codec: int | None = {"producer": None, "uncompressed": 0}.get(name, -1)
        if self.codec == -1:
            self.codec = int(Codec.of(name))
        levels = {
            Codec.GZIP: options.compression_gzip_level,
            Codec.LZ4: options.compression_lz4_level,
            Codec.ZSTD: options.compression_zstd_level,
        }
        self.level: int | None = levels.get(Codec(self.codec)) if self.codec else None

    def timestamp_bounds(self, now_ms: int) -> tuple[int, int]:
        """Return the least and greatest timestamp that a record may have now."""
        if not self.bounded:
            return TIMESTAMP_MIN, TIMESTAMP_MAX
        return now_ms - self.before_ms_max, min(now_ms + self.after_ms_max, TIMESTAMP_MAX)


def stored_bounds(options: TopicOptions) -> Bounds:
    """Return what a batch of a topic may unpack to, once it is stored.

    A record that may come uncompressed may also come compressed.
    """
    return Bounds(max(options.barnabas_unpacked_record_max_bytes, options.max_message_bytes))


def validate(
    records: Buffer, rules: Rules, now_ms: int, version: int, origin: Origin
) -> tuple[Buffer, BatchHeader]:
    """Return the bytes to append, offsets not yet set, and their header.

    The result may be `records` itself, stamped in place. Raises RequestError with the code for the
    producer.
    """
    if len(records) <= MAGIC_AT:
        raise RequestError(ErrorCode.INVALID_RECORD, "the request has no record batch")
    if records[MAGIC_AT] < 2:
        if version >= _FIRST_VERSION_WITH_BATCHES and origin == "client":
            raise InvalidBatch(
                f"batch of magic {records[MAGIC_AT]}: must be 2 in Produce version {version}",
                wrong_magic=True,
            )
        try:
            records = up_convert(records, codec=rules.codec, limit=rules.bounds.record)
        except CorruptRecordError as failure:
            raise RequestError(failure.code, str(failure)) from failure
        rules.converted += scan_batch(records).count
        version = NEWEST_VERSION
    low, high = rules.timestamp_bounds(now_ms)
    try:
        header, max_timestamp, _, faults = inspect_batch(
            records, 0, -1, low, high, rules.require_key
        )
    except CorruptRecordError as failure:
        raise _diagnose(records, rules, version, origin, failure) from failure
    size, attributes = header.size, header.attributes
    if origin == "client":
        _check_header(header, rules, version)
    elif size > rules.message_bytes_max:
        raise _too_large(size, rules)
    if size != len(records):
        records = _cut(records, size)
    codec = attributes & CODEC_MASK
    if codec or faults or attributes & APPEND_TIME_BIT or rules.append_time:
        return _validate_slowly(records, header, rules, now_ms, max_timestamp, faults)
    if rules.codec and not attributes & CONTROL_BIT:
        return _repack(records, header, rules, now_ms, max_timestamp)
    if size > rules.segment_bytes:
        raise _larger_than_segment(size, rules)
    if max_timestamp != header.max_timestamp:
        return _stamp(records, False, max_timestamp)
    return records, header


def _check_header(header: BatchHeader, rules: Rules, version: int) -> None:
    """Reject what a client must not send, whatever its records are."""
    if header.attributes & CODEC_MASK == Codec.ZSTD and version < _FIRST_VERSION_WITH_ZSTD:
        raise RequestError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"zstd in Produce version {version}: needs {_FIRST_VERSION_WITH_ZSTD} or later",
        )
    if header.base_offset != 0:
        raise InvalidBatch(f"base offset of a produced batch is {header.base_offset}, must be 0")
    if header.size > rules.message_bytes_max:
        raise _too_large(header.size, rules)
    count, offsets = header.count, header.last_offset_delta + 1
    if count <= 0 or offsets != count:
        raise InvalidBatch(f"the batch spans {offsets} offsets and has {count} records")
    if header.attributes & CONTROL_BIT:
        raise _invalid("control batches cannot be produced by clients")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise InvalidBatch(
            f"producer {header.producer_id}: sequence {header.base_sequence}, must be at least 0"
        )


def _diagnose(
    records: Buffer, rules: Rules, version: int, origin: Origin, failure: CorruptRecordError
) -> RequestError:
    """Return why a batch is unreadable: errors in the header come before the CRC."""
    try:
        header = scan_batch(records)
        if origin == "client":
            _check_header(header, rules, version)
        if (
            header.size <= len(records)
            and crc32c(memoryview(records)[ATTRIBUTES_AT : header.size]) == header.crc
        ):
            return _invalid(str(failure))
    except CorruptRecordError:
        if records[MAGIC_AT] != 2:
            return _invalid(str(failure))
    except RequestError as refusal:
        # Counts that contradict each other are only believed of bytes whose CRC is right.
        if refusal.code is not ErrorCode.INVALID_RECORD or header.base_offset != 0:
            return refusal
        if (
            header.size <= len(records)
            and crc32c(memoryview(records)[ATTRIBUTES_AT : header.size]) == header.crc
        ):
            return refusal
    return RequestError(failure.code, str(failure))


def _cut(records: Buffer, size: int) -> Buffer:
    """Return only the first batch; an incomplete rest is dropped, a second batch rejected."""
    rest = len(records) - size
    if rest >= PREFIX_SIZE:
        announced = int.from_bytes(records[size + 8 : size + PREFIX_SIZE], "big", signed=True)
        if announced + PREFIX_SIZE <= rest:
            raise _invalid("more than one record batch for a partition; must be exactly one")
    return memoryview(records)[:size]


def _validate_slowly(
    records: Buffer,
    header: BatchHeader,
    rules: Rules,
    now_ms: int,
    max_timestamp: int,
    faults: Faults,
) -> tuple[Buffer, BatchHeader]:
    """Continue with a batch that is compressed or faulty, or has or needs append time."""
    attributes, renumber = header.attributes, False
    if attributes & CODEC_MASK:
        max_timestamp, renumber, faults = _walk(records, header, rules, now_ms)
    if attributes & APPEND_TIME_BIT:
        faults = _append_time_faults(header, rules, now_ms, faults)
        max_timestamp = header.max_timestamp
    if faults:
        raise _refused_records(faults)
    if renumber or (
        rules.codec is not None
        and rules.codec != attributes & CODEC_MASK
        and not attributes & CONTROL_BIT
    ):
        return _repack(records, header, rules, now_ms, max_timestamp, renumber=renumber)
    if header.size > rules.segment_bytes:
        raise _larger_than_segment(header.size, rules)
    if rules.append_time:
        return _stamp(records, True, now_ms)
    if attributes & APPEND_TIME_BIT or max_timestamp != header.max_timestamp:
        return _stamp(records, False, max_timestamp)
    return records, header


def _walk(
    records: Buffer, header: BatchHeader, rules: Rules, now_ms: int
) -> tuple[int, bool, Faults]:
    """Check every record of a compressed batch, chunk by chunk, up to one with a fault.

    Returns the greatest timestamp, whether the offset deltas must be numbered again (in a
    compressed batch they are corrected, not rejected), and the other faults.
    """
    low, high = rules.timestamp_bounds(now_ms)
    held_max = rules.bounds.held_max(header.size)
    greatest, renumber, index, total = NO_TIMESTAMP, False, 0, 0
    try:
        for chunk, count in read_chunks(records, 0, header, rules.bounds):
            timestamp, _, faults = validate_records(
                chunk,
                0,
                len(chunk),
                count,
                header.base_timestamp,
                timestamp_min=low,
                timestamp_max=high,
                require_key=rules.require_key,
                first=index,
            )
            greatest = max(greatest, timestamp)
            if faults:
                renumber = renumber or any(fault is Fault.OFFSET for _, fault in faults)
                faults = tuple(entry for entry in faults if entry[1] is not Fault.OFFSET)
                if faults:
                    return greatest, renumber, faults
            index += count
            total += len(chunk)
            if renumber and total > held_max:
                raise whole_too_large(held_max, _WRONG_DELTAS)
    except TooLargeError as failure:
        raise RequestError(ErrorCode.MESSAGE_TOO_LARGE, str(failure)) from failure
    except CorruptRecordError as failure:
        raise RequestError(ErrorCode.CORRUPT_MESSAGE, str(failure)) from failure
    return greatest, renumber, ()


def _append_time_faults(header: BatchHeader, rules: Rules, now_ms: int, faults: Faults) -> Faults:
    """Check a batch whose producer claims append time: every record has the header's max timestamp.
    A topic with create time accepts it if that is a real timestamp; the claim is then removed.
    """
    low, high = rules.timestamp_bounds(now_ms)
    timestamp = header.max_timestamp
    others = tuple(entry for entry in faults if entry[1] is not Fault.TIMESTAMP)
    if rules.append_time or timestamp == NO_TIMESTAMP or not low <= timestamp <= high:
        faulty = {index for index, _ in others}
        named = range(min(header.count, _FAULTS_MAX))
        wrong = [(i, Fault.TIMESTAMP) for i in named if i not in faulty]
        return tuple(sorted([*others, *wrong]))
    return others


def _repack(
    records: Buffer,
    header: BatchHeader,
    rules: Rules,
    now_ms: int,
    max_timestamp: int,
    *,
    renumber: bool = False,
) -> tuple[Buffer, BatchHeader]:
    """Rebuild the batch with the topic's codec, and with new offset deltas if necessary."""
    codec = header.codec if rules.codec is None else Codec(rules.codec)
    try:
        if renumber:
            batch = _renumbered(records, header, codec, rules)
        else:
            batch = recompress(
                records,
                header,
                codec,
                level=rules.level,
                bounds=rules.bounds,
                size_max=rules.message_bytes_max,
            )
    except TooLargeError as failure:
        raise RequestError(ErrorCode.MESSAGE_TOO_LARGE, str(failure)) from failure
    if len(batch) > rules.message_bytes_max:
        raise _too_large(len(batch), rules)
    if len(batch) > rules.segment_bytes:
        raise _larger_than_segment(len(batch), rules)
    rules.converted += header.count
    if rules.append_time:
        return _stamp(batch, True, now_ms)
    return _stamp(batch, False, header.max_timestamp if header.is_append_time else max_timestamp)


def _renumbered(records: Buffer, header: BatchHeader, codec: Codec, rules: Rules) -> bytearray:
    """Return the batch with offset deltas that count; all of it is held for that."""
    held_max = rules.bounds.held_max(header.size)
    try:
        return bytearray(
            build_batch(
                read_batch(records, header, 0, rules.bounds._replace(batch=held_max)),
                codec,
                level=rules.level,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=header.base_sequence,
                transactional=header.is_transactional,
            )
        )
    except TooLargeError:
        raise whole_too_large(held_max, _WRONG_DELTAS) from None


def _stamp(records: Buffer, append_time: bool, max_timestamp: int) -> tuple[Buffer, BatchHeader]:
    """Set timestamp type and max timestamp, in place when the bytes allow it."""
    writable = records if _is_writable(records) else bytearray(records)
    assert not isinstance(writable, bytes)
    stamp_timestamp(writable, 0, append_time, max_timestamp)
    return writable, scan_batch(writable)


def _is_writable(records: Buffer) -> bool:
    return not memoryview(records).readonly


def _refused_records(faults: Faults) -> InvalidRecords:
    """Turn faults into the response; one bad timestamp makes it INVALID_TIMESTAMP."""
    code = ErrorCode.INVALID_RECORD
    if any(fault is Fault.TIMESTAMP for _, fault in faults):
        code = ErrorCode.INVALID_TIMESTAMP
    named = faults[:_FAULTS_MAX]
    return InvalidRecords(code, tuple((index, fault.text) for index, fault in named))


def _invalid(message: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_RECORD, message)


def _too_large(size: int, rules: Rules) -> RequestError:
    return RequestError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"batch of {size} bytes exceeds max.message.bytes={rules.message_bytes_max}",
    )


def _larger_than_segment(size: int, rules: Rules) -> RequestError:
    return RequestError(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"batch of {size} bytes exceeds segment.bytes={rules.segment_bytes}",
    )
