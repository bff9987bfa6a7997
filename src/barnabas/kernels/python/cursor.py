"""The records of a fetched partition, for a consumer: batch after batch, decoded as asked for.

A batch is opened when its first record is: its CRC is checked, it is decompressed, and whole
batches that the user must not see are skipped (below the wanted offset, transaction markers,
aborted transactions). The position moves past what is skipped, and past the end of a batch whose
last records were compacted away. An unreadable record stops the reader before it permanently; so
does the last record of a batch with bytes left over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from barnabas.kernels.batch_header import (
    APPEND_TIME_BIT,
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_SIZE,
    MAGIC_AT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    size_at,
)
from barnabas.kernels.contract import (
    Buffer,
    Fault,
    corrupt_record,
    cut_marker,
    untraced,
    wrong_counts,
    wrong_crc,
)
from barnabas.kernels.python.batch import scan_batch
from barnabas.kernels.python.column_store import ColumnStore
from barnabas.kernels.python.consumer_record import ConsumerRecord
from barnabas.kernels.python.crc32c import crc32c
from barnabas.kernels.python.layout import Layout, RecordFault, read_layout, wrap64
from barnabas.kernels.python.reader import read_headers


class RecordCursor:
    """The unread rest of a partition's part of a Fetch response; `take` returns its records in
    lists.

    `position` is the offset after what was taken, `leader_epoch` the epoch of the batch before it.
    `progressed` says whether there was at least one whole batch. `aborted` lists (first offset,
    producer id) of aborted transactions for readers of committed records. `unpack(codec, bytes,
    count)` decompresses this many records: to a buffer, or to an iterator of buffers with whole
    records and their number, one in memory at a time. A deserializer is a function of bytes, or an
    object whose `deserialize` gets topic, headers and bytes. The buffer must stay unchanged.
    """

    def __init__(
        self,
        buffer: Buffer,
        topic: str,
        partition: int,
        position: int,
        *,
        unpack: Callable[[int, memoryview, int], Buffer | Iterator[tuple[Buffer, int]]],
        check_crcs: bool = True,
        aborted: Iterable[tuple[int, int]] | None = None,
        key_deserializer: Any = None,
        value_deserializer: Any = None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.position = position
        self.leader_epoch = -1
        self.progressed = False
        self._buffer = memoryview(buffer)
        self._next = 0
        self._check_crcs = check_crcs
        self._unpack = unpack
        self._key_deserializer = _function(key_deserializer)
        self._value_deserializer = _function(value_deserializer)
        self._aborted = sorted(aborted or (), reverse=True)
        self._aborting: set[int] = set()
        self._unpacked: dict[int, Any] = {}
        self._batch: BatchHeader | None = None
        self._records = memoryview(b"")
        self._chunks: Iterator[tuple[Buffer, int]] | None = None
        self._failure: Exception | None = None
        self._at = 0
        self._index = 0
        self._stop = 0  # the index after the records that are there

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left."""
        return self._batch is None and len(self._buffer) - self._next < HEADER_SIZE

    @property
    def unpacking(self) -> bool:
        """Whether it is inside a large batch, of which one chunk is in memory at a time."""
        return self._chunks is not None

    @property
    def bytes_left(self) -> int:
        """How many fetched bytes are not read yet."""
        left = len(self._buffer) - self._next
        return left if left >= HEADER_SIZE else 0

    def survey(self) -> tuple[int, int]:
        """Return where the next fetch begins, after all whole batches: offset, and epoch before."""
        begin, position, epoch = self._next, self.position, -1
        while len(self._buffer) - begin >= HEADER_SIZE and self._buffer[begin + MAGIC_AT] == 2:
            size = size_at(self._buffer, begin)
            if not HEADER_SIZE <= size <= len(self._buffer) - begin:
                break
            header = scan_batch(self._buffer, begin)
            position = max(position, header.next_offset)
            epoch = header.leader_epoch
            begin += size
        return position, epoch

    def prepare(self, size_max: int) -> None:
        """Decompress batches in advance, up to `size_max` bytes."""
        begin, total = self._next, 0
        while total < size_max and len(self._buffer) - begin >= HEADER_SIZE:
            if self._buffer[begin + MAGIC_AT] != 2:
                return
            header = scan_batch(self._buffer, begin)
            size, attributes = header.size, header.attributes
            if size > len(self._buffer) - begin:
                return
            if attributes & CODEC_MASK and not attributes & CONTROL_BIT:
                if self._check_crcs and self._crc(begin, size) != header.crc:
                    return  # reading the batch raises it
                packed = self._buffer[begin + HEADER_SIZE : begin + size]
                records = self._unpack(attributes & CODEC_MASK, packed, header.count)
                self._unpacked[begin] = records
                if not _is_buffer(records):
                    return  # it is large, and unpacked as it is read
                total += len(records)  # type: ignore[arg-type]
            begin += size

    def take(self, count: int, /) -> list[ConsumerRecord]:
        """Return the next records, at most `count`; an error is raised after those before it."""
        records: list[ConsumerRecord] = []
        try:
            while count > len(records) and (self._batch is not None or self._open()):
                if records and self._chunks is not None and self._index == self._stop:
                    break  # the next chunk may be large: it comes with the next call
                record = self._read()
                if record is not None:
                    records.append(record)
        except Exception:  # of user code, too
            # The reader stands before what failed, so the next call comes to it again.
            if not records:
                raise
        return records

    def fill(self, store: ColumnStore, count: int, /) -> int:
        """Append the next records, at most `count`, to the store; return how many."""
        functions = self._key_deserializer, self._value_deserializer
        self._key_deserializer = self._value_deserializer = None
        try:
            records = self.take(count)
        finally:
            self._key_deserializer, self._value_deserializer = functions
        store.append(records)
        return len(records)

    def _open(self) -> bool:
        """Open the next batch with records for the user; return False if there is none."""
        while len(self._buffer) - self._next >= HEADER_SIZE:
            begin = self._next
            if self.progressed and self._buffer[begin + MAGIC_AT] < 2:
                # An older format: the next fetch begins with it, and it is converted on arrival.
                self._next = len(self._buffer)
                break
            header = scan_batch(self._buffer, begin)
            size, count = header.size, header.count
            if size > len(self._buffer) - begin:
                self._next = len(self._buffer)
                break
            last_offset = header.last_offset
            if last_offset >= self.position:
                if self._check_crcs and self._crc(begin, size) != header.crc:
                    raise wrong_crc(header.crc, self._crc(begin, size))
                if not 0 <= count <= header.last_offset_delta + 1:
                    raise wrong_counts(count, header.last_offset_delta)
                if self._is_visible(header, begin) and count:
                    self._enter(header, begin)
                    return True
                self.position = last_offset + 1
                self.leader_epoch = header.leader_epoch
            self._next = begin + size
            self.progressed = True
        return False

    def _crc(self, begin: int, size: int) -> int:
        return crc32c(self._buffer[begin + ATTRIBUTES_AT : begin + size])

    def _is_visible(self, header: BatchHeader, begin: int) -> bool:
        """Follow the transactions up to this batch; return whether the user may see it."""
        attributes, producer_id = header.attributes, header.producer_id
        if not attributes & (TRANSACTIONAL_BIT | CONTROL_BIT):
            return True
        while self._aborted and self._aborted[-1][0] <= header.last_offset:
            self._aborting.add(self._aborted.pop()[1])
        if not attributes & CONTROL_BIT:
            return producer_id not in self._aborting
        # Compaction may have emptied a marker's batch: then nothing of the transaction is left.
        if header.count:
            try:
                marker = read_layout(self._buffer, begin + HEADER_SIZE, begin + header.size)
            except RecordFault as failure:
                raise corrupt_record(0, failure.fault) from None
            if marker.key_length < 4:
                raise cut_marker()
            if bytes(self._buffer[marker.key_start + 2 : marker.key_start + 4]) == b"\0\0":
                self._aborting.discard(producer_id)
        return False

    def _enter(self, header: BatchHeader, begin: int) -> None:
        packed = self._buffer[begin + HEADER_SIZE : begin + header.size]
        if header.attributes & CODEC_MASK:
            records = self._unpacked.pop(begin, None)
            if records is None:
                records = self._unpack(header.attributes & CODEC_MASK, packed, header.count)
            if _is_buffer(records):
                packed = memoryview(records)
            else:
                self._chunks, packed = records, memoryview(b"")
        self._batch, self._records, self._at, self._index = header, packed, 0, 0
        self._stop = header.count if self._chunks is None else 0
        self._next = begin + header.size
        self.progressed = True

    def _read(self) -> ConsumerRecord | None:
        """Return the next record of the open batch, or None if it is below the position."""
        header = self._batch
        assert header is not None
        if self._index == self._stop:
            self._go_on()
        try:
            layout = read_layout(self._records, self._at, len(self._records))
        except RecordFault as failure:
            raise corrupt_record(self._index, failure.fault) from None
        if self._index + 1 == self._stop and layout.end != len(self._records):
            raise corrupt_record(self._stop, Fault.LEFTOVER)
        record = None
        if wrap64(header.base_offset + layout.offset_delta) >= self.position:
            record = self._make(header, layout)
            self.position = record.offset + 1
            self.leader_epoch = header.leader_epoch
        self._at = layout.end
        self._index += 1
        if self._index == header.count:
            self._batch = self._chunks = None
            self.position = header.next_offset
            self.leader_epoch = header.leader_epoch
        return record

    def _go_on(self) -> None:
        """Read the next chunk of a large batch; a failure is kept for the next call."""
        if self._failure is not None:
            raise untraced(self._failure)
        assert self._chunks is not None
        try:
            records, count = next(self._chunks, (b"", 1))  # one that is not there is cut
        except Exception as failure:
            self._failure = untraced(failure)
            raise
        self._records, self._at = memoryview(records), 0
        self._stop += count

    def _make(self, header: BatchHeader, layout: Layout) -> ConsumerRecord:
        stamped = bool(header.attributes & APPEND_TIME_BIT)
        offset = wrap64(header.base_offset + layout.offset_delta)
        headers = read_headers(self._records, layout)
        key = _field(self._records, layout.key_start, layout.key_length)
        value = _field(self._records, layout.value_start, layout.value_length)
        try:
            if self._key_deserializer is not None:
                key = self._key_deserializer(self.topic, list(headers), key)
            if self._value_deserializer is not None:
                value = self._value_deserializer(self.topic, list(headers), value)
        except Exception as failure:
            failure.add_note(f"in {self.topic}-{self.partition} at offset {offset}")
            raise
        return ConsumerRecord(
            self.topic,
            self.partition,
            header.leader_epoch,
            offset,
            header.max_timestamp
            if stamped
            else wrap64(header.base_timestamp + layout.timestamp_delta),
            int(stamped),
            key,
            value,
            headers,
            None,
            layout.key_length,
            layout.value_length,
            sum(len(name.encode()) + len(content or b"") for name, content in headers)
            if headers
            else -1,
        )


def _is_buffer(records: object) -> bool:
    return isinstance(records, (bytes, bytearray, memoryview))


def _function(deserializer: Any) -> Callable[[str, list[Any], Any], Any] | None:
    """Return a deserializer of any kind as a function of topic, headers and bytes."""
    if deserializer is None:
        return None
    if hasattr(deserializer, "deserialize"):
        whole: Callable[[str, list[Any], Any], Any] = deserializer.deserialize
        return whole
    return lambda topic, headers, data: deserializer(data)


def _field(buffer: memoryview, start: int, length: int) -> Any:
    return None if length < 0 else bytes(buffer[start : start + length])
