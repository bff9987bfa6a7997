"""Records of one batch, decoded on demand."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.kernels.contract import Buffer, Fault, Headers, corrupt_record, wrong_range
from barnabas.kernels.python.layout import Layout, RecordFault, read_layout, read_varint, wrap64


class Record:
    """One record as a consumer sees it; compares, hashes and prints by its fields."""

    __slots__ = ("headers", "key", "offset", "timestamp", "value")

    def __init__(
        self,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
    ) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers

    def _fields(self) -> tuple[int, int, bytes | None, bytes | None, Headers]:
        return self.offset, self.timestamp, self.key, self.value, self.headers

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return (
            f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, "
            f"value={self.value!r}, headers={self.headers!r})"
        )


class RecordReader:
    """An iterator over uncompressed records; `take` gives them in lists.

    The buffer must stay unchanged until the last record is read. `append_time` replaces the
    records' own timestamps, as batches stamped by the broker ask for.
    """

    def __init__(
        self,
        buffer: Buffer,
        start: int,
        end: int,
        count: int,
        base_offset: int,
        base_timestamp: int,
        append_time: int | None = None,
    ) -> None:
        if not 0 <= start <= end <= len(buffer):
            raise wrong_range(start, end, len(buffer))
        if count < 0:
            raise corrupt_record(0, Fault.COUNT)
        if count == 0 and start != end:
            raise corrupt_record(0, Fault.LEFTOVER)
        self._buffer = memoryview(buffer)
        self._position = start
        self._end = end
        self._index = 0
        self._count = count
        self._base_offset = base_offset
        self._base_timestamp = base_timestamp
        self._append_time = append_time

    @property
    def remaining(self) -> int:
        """How many records are left."""
        return self._count - self._index

    def take(self, count: int, /) -> list[Record]:
        """Return the next records, at most `count`; an empty list is the end."""
        return [next(self) for _ in range(min(count, self.remaining))]

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        if self._index >= self._count:
            raise StopIteration
        try:
            layout = read_layout(self._buffer, self._position, self._end)
        except RecordFault as failure:
            raise corrupt_record(self._index, failure.fault) from None
        self._index += 1
        self._position = layout.end
        if self._index == self._count and self._position != self._end:
            raise corrupt_record(self._count, Fault.LEFTOVER)
        return self._record(layout)

    def _record(self, layout: Layout) -> Record:
        if self._append_time is None:
            timestamp = wrap64(self._base_timestamp + layout.timestamp_delta)
        else:
            timestamp = self._append_time
        return Record(
            wrap64(self._base_offset + layout.offset_delta),
            timestamp,
            _field(self._buffer, layout.key_start, layout.key_length),
            _field(self._buffer, layout.value_start, layout.value_length),
            read_headers(self._buffer, layout),
        )


def read_records(
    buffer: Buffer,
    start: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None = None,
) -> RecordReader:
    """Read uncompressed records lazily."""
    return RecordReader(buffer, start, end, count, base_offset, base_timestamp, append_time)


def read_headers(buffer: Buffer, layout: Layout) -> Headers:
    """Return a record's headers; bytes of a name that are not UTF-8 become U+FFFD, as in Java."""
    headers = []
    position = layout.headers_start
    for _ in range(layout.header_count):
        length, start = read_varint(buffer, position, layout.end, Fault.LENGTH)
        name = str(bytes(buffer[start : start + length]), "utf-8", "replace")
        length, start = read_varint(buffer, start + length, layout.end, Fault.LENGTH)
        headers.append((name, _field(buffer, start, length)))
        position = start + max(length, 0)
    return tuple(headers)


def _field(buffer: Buffer, start: int, length: int) -> bytes | None:
    return None if length < 0 else bytes(buffer[start : start + length])
