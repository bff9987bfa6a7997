"""`Message`: a record that was consumed or delivered, or an error in its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

from barnabas.compat.confluent_kafka.error import KafkaError
from barnabas.kernels import ConsumerRecord

TIMESTAMP_NOT_AVAILABLE = 0
TIMESTAMP_CREATE_TIME = 1
TIMESTAMP_LOG_APPEND_TIME = 2

K = TypeVar("K")
V = TypeVar("V")


class Message(Generic[K, V]):
    """Everything about a record, by methods: `message.value()`. `len()` is the value's size."""

    __slots__ = (
        "_delivery_count",
        "_error",
        "_headers",
        "_key",
        "_latency",
        "_leader_epoch",
        "_offset",
        "_partition",
        "_timestamp",
        "_topic",
        "_value",
    )

    def __init__(
        self,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        key: Any = None,
        value: Any = None,
        headers: Any = None,
        error: KafkaError | None = None,
        timestamp: tuple[int, int] | None = None,
        latency: float | None = None,
        leader_epoch: int | None = None,
        delivery_count: int | None = None,
    ) -> None:
        self._topic = topic
        self._partition = partition
        self._offset = offset
        self._key = key
        self._value = value
        self._headers = headers
        self._error = error
        self._timestamp = (TIMESTAMP_NOT_AVAILABLE, 0) if timestamp is None else timestamp
        self._latency = latency
        self._leader_epoch = leader_epoch
        self._delivery_count = delivery_count

    def topic(self) -> str | None:
        """Return the topic."""
        return self._topic

    def partition(self) -> int | None:
        """Return the partition's number."""
        return self._partition

    def offset(self) -> int | None:
        """Return the offset."""
        return self._offset

    def key(self) -> Any:
        """Return the key."""
        return self._key

    def value(self) -> Any:
        """Return the value; of an error, what it says."""
        return self._value

    def deserialized_key(self) -> K | None:
        """Return the key, as a deserializer has made it."""
        key: K | None = self._key
        return key

    def deserialized_value(self) -> V | None:
        """Return the value, as a deserializer has made it."""
        value: V | None = self._value
        return value

    def headers(self) -> Any:
        """Return the headers as a list of pairs; None without any."""
        return self._headers

    def error(self) -> KafkaError | None:
        """Return the error that came in place of a record; None for a record."""
        return self._error

    def timestamp(self) -> tuple[int, int]:
        """Return the type of the timestamp, and milliseconds since 1970."""
        return self._timestamp

    def latency(self) -> float | None:
        """Return the seconds from `produce` to the broker's answer; None if consumed."""
        return self._latency

    def leader_epoch(self) -> int | None:
        """Return the epoch of the leader that has written the record, if known."""
        return self._leader_epoch

    def delivery_count(self) -> int | None:
        """Return None: shared delivery is not counted here."""
        return self._delivery_count

    def set_headers(self, headers: Any) -> None:
        """Replace the headers."""
        self._headers = headers

    def set_key(self, key: Any) -> None:
        """Replace the key."""
        self._key = key

    def set_value(self, value: Any) -> None:
        """Replace the value."""
        self._value = value

    def set_error(self, error: KafkaError | None) -> None:
        """Replace the error."""
        self._error = error

    def __len__(self) -> int:
        return 0 if self._value is None else len(self._value)

    def __repr__(self) -> str:
        return f"<Message {self._topic}[{self._partition}]@{self._offset} error={self._error}>"


def consumed(record: ConsumerRecord) -> Message[Any, Any]:
    """Return the message of a record that was read."""
    kind = record.timestamp_type + 1 if record.timestamp >= 0 else TIMESTAMP_NOT_AVAILABLE
    epoch = record.leader_epoch
    return Message(
        record.topic,
        record.partition,
        record.offset,
        record.key,
        record.value,
        list(record.headers) or None,
        None,
        (kind, record.timestamp),
        None,
        epoch if epoch is None or epoch >= 0 else None,
    )


def error_message(
    error: KafkaError, topic: str | None = None, partition: int = -1, offset: int | None = None
) -> Message[Any, Any]:
    """Return an error in the place of a message."""
    return Message(topic, partition, offset, None, error.str().encode(), None, error, (0, -1))


def header_pairs(headers: object) -> list[tuple[str, bytes | None]] | None:
    """Return headers, given as a dict or a list of pairs, as our producer takes them."""
    if headers is None:
        return None
    if isinstance(headers, Mapping):
        pairs: Iterable[Any] = headers.items()
    elif isinstance(headers, (list, tuple)):
        pairs = headers
    else:
        raise TypeError(f"headers must be a dict or a list of pairs, not {type(headers).__name__}")
    try:
        return [(str(name), _bytes(value)) for name, value in pairs]
    except ValueError:
        raise TypeError("headers must be a dict or a list of (name, value) pairs") from None


def _bytes(value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise TypeError(f"a header's value must be bytes, str or None, not {type(value).__name__}")
