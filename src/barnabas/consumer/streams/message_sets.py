"""Requests and responses of the simple consumer, in the shape that programs of its time know.

request = (
    FetchRequestBuilder().client_id("audit").max_wait(500).add_fetch("orders", 0, 17, 100_000)
).build()
response = consumer.fetch(request)
if response.has_error:
    print(response.error_code("orders", 0))
for each in response.message_set("orders", 0):
    print(each.offset, each.message.payload, each.next_offset)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import iterate, read_headers
from barnabas.records.bounds import READING, Bounds
from barnabas.records.conversion import to_batches

Answer = TypeVar("Answer")


class PartitionFetchInfo(NamedTuple):
    """The offset to fetch from, and the maximum number of bytes."""

    offset: int
    fetch_size: int


class FetchRequest(NamedTuple):
    """The contents of one fetch; built by FetchRequestBuilder."""

    client_id: str | None
    max_wait_ms: int
    min_bytes: int
    replica_id: int
    partitions: Mapping[TopicPartition, PartitionFetchInfo]


class FetchRequestBuilder:
    """Collects the parts of a fetch request; every method but `build` returns the builder."""

    def __init__(self) -> None:
        self._client_id: str | None = None
        self._max_wait_ms = 0
        self._min_bytes = 0
        self._replica_id = -1
        self._partitions: dict[TopicPartition, PartitionFetchInfo] = {}

    def client_id(self, client_id: str) -> FetchRequestBuilder:
        """Set the client id sent to the broker; by default the consumer's."""
        self._client_id = client_id
        return self

    def max_wait(self, max_wait_ms: int) -> FetchRequestBuilder:
        """Set how long the broker may wait for `min_bytes`."""
        self._max_wait_ms = _not_negative("max_wait", max_wait_ms)
        return self

    def min_bytes(self, min_bytes: int) -> FetchRequestBuilder:
        """Set how many bytes the broker should wait for."""
        self._min_bytes = _not_negative("min_bytes", min_bytes)
        return self

    def replica_id(self, replica_id: int) -> FetchRequestBuilder:
        """Set the replica id: -1 for a consumer, -2 for a debugging one, which followers serve."""
        self._replica_id = replica_id
        return self

    def add_fetch(
        self, topic: str, partition: int, offset: int, fetch_size: int
    ) -> FetchRequestBuilder:
        """Add a partition; if it is added twice, the last one counts."""
        wanted = PartitionFetchInfo(
            _not_negative("offset", offset), _not_negative("fetch_size", fetch_size)
        )
        self._partitions[TopicPartition(topic, partition)] = wanted
        return self

    def build(self) -> FetchRequest:
        """Return the request, and begin a new one with no partition."""
        partitions, self._partitions = self._partitions, {}
        return FetchRequest(
            self._client_id, self._max_wait_ms, self._min_bytes, self._replica_id, partitions
        )


class Message(NamedTuple):
    """A message as it was produced."""

    key: bytes | None
    payload: bytes | None
    timestamp: int
    headers: Any

    @property
    def has_key(self) -> bool:
        return self.key is not None

    @property
    def is_null(self) -> bool:
        """Whether it has no payload, like a tombstone of a compacted topic."""
        return self.payload is None


class MessageAndOffset(NamedTuple):
    """A message and its offset."""

    message: Message
    offset: int

    @property
    def next_offset(self) -> int:
        """The offset to fetch from after this message."""
        return self.offset + 1


class MessageSet:
    """The messages of one partition in a fetch response, decoded on each iteration.

    Compressed messages are decompressed. Those before the requested offset, which a broker
    sends along if they share a batch with it, are left out; so is a truncated one at the end.
    """

    def __init__(self, data: bytes, offset: int, bounds: Bounds = READING) -> None:
        self._data = to_batches(data, bounds.record)
        self._offset = offset
        self._bounds = bounds
        self.size_in_bytes = len(data)

    @property
    def valid_bytes(self) -> int:
        """The size of the whole batches in bytes; 0 means that the fetch size was too small."""
        return sum(header.size for header in read_headers(self._data))

    @property
    def next_offset(self) -> int:
        """The offset to fetch from after the set, even if its last messages were compacted."""
        headers = read_headers(self._data)
        return max(headers[-1].next_offset, self._offset) if headers else self._offset

    def __iter__(self) -> Iterator[MessageAndOffset]:
        for record in iterate(self._data, bounds=self._bounds):
            if record.offset >= self._offset:
                message = Message(
                    _bytes(record.key), _bytes(record.value), record.timestamp, record.headers
                )
                yield MessageAndOffset(message, record.offset)


class FetchAnswer(NamedTuple):
    """One partition's part of a fetch response."""

    error: ErrorCode
    high_watermark: int
    message_set: MessageSet


class FetchResponse:
    """The response to a fetch request, partition by partition."""

    def __init__(self, answers: Mapping[TopicPartition, FetchAnswer]) -> None:
        self._answers = answers

    @property
    def has_error(self) -> bool:
        """Whether any partition has an error."""
        return any(answer.error for answer in self._answers.values())

    def error_code(self, topic: str, partition: int) -> ErrorCode:
        """Return the error of a partition, NONE without one."""
        return self._of(topic, partition).error

    def high_watermark(self, topic: str, partition: int) -> int:
        """Return the high watermark of a partition."""
        return self._of(topic, partition).high_watermark

    def message_set(self, topic: str, partition: int) -> MessageSet:
        """Return the messages of a partition."""
        return self._of(topic, partition).message_set

    def _of(self, topic: str, partition: int) -> FetchAnswer:
        return _found(self._answers, topic, partition)


class PartitionOffsetRequestInfo(NamedTuple):
    """The timestamp before which offsets are looked up (or LATEST or EARLIEST), and their limit."""

    time: int
    max_num_offsets: int


class OffsetAnswer(NamedTuple):
    """One partition's part of an offset response."""

    error: ErrorCode
    offsets: tuple[int, ...]


class OffsetResponse:
    """The response to an offset request, partition by partition."""

    def __init__(self, answers: Mapping[TopicPartition, OffsetAnswer]) -> None:
        self._answers = answers

    @property
    def has_error(self) -> bool:
        """Whether any partition has an error."""
        return any(answer.error for answer in self._answers.values())

    def error_code(self, topic: str, partition: int) -> ErrorCode:
        """Return the error of a partition, NONE without one."""
        return _found(self._answers, topic, partition).error

    def offsets(self, topic: str, partition: int) -> tuple[int, ...]:
        """Return the offsets of a partition, the newest first."""
        return _found(self._answers, topic, partition).offsets


def _found(answers: Mapping[TopicPartition, Answer], topic: str, partition: int) -> Answer:
    try:
        return answers[TopicPartition(topic, partition)]
    except KeyError:
        raise InvalidValueError(f"{topic}-{partition} was not in the request") from None


def _not_negative(name: str, value: int) -> int:
    if value < 0:
        raise InvalidValueError(f"{name}={value}: must be at least 0")
    return value


def _bytes(data: bytes | memoryview | None) -> bytes | None:
    return None if data is None else bytes(data)
