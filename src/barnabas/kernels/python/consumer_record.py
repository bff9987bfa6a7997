"""A record that a consumer has read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

FIELDS = (
    "topic",
    "partition",
    "leader_epoch",
    "offset",
    "timestamp",
    "timestamp_type",
    "key",
    "value",
    "headers",
    "checksum",
    "serialized_key_size",
    "serialized_value_size",
    "serialized_header_size",
)


class ConsumerRecord:
    """One record that a consumer has read: behaves like a named tuple of its fields.

    Sizes are those of the bytes as they were stored, -1 where there are none. `timestamp_type` is 0
    for the producer's clock, 1 for the broker's. `checksum` is None: batches have one, records not.
    """

    __slots__ = (
        "_pairs",
        "checksum",
        "key",
        "leader_epoch",
        "offset",
        "partition",
        "serialized_header_size",
        "serialized_key_size",
        "serialized_value_size",
        "timestamp",
        "timestamp_type",
        "topic",
        "value",
    )

    _fields = FIELDS
    __match_args__ = FIELDS

    def __init__(
        self,
        topic: str,
        partition: int,
        leader_epoch: int,
        offset: int,
        timestamp: int,
        timestamp_type: int,
        key: Any,
        value: Any,
        headers: Iterable[tuple[str, bytes | None]] = (),
        checksum: int | None = None,
        serialized_key_size: int = -1,
        serialized_value_size: int = -1,
        serialized_header_size: int = -1,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.offset = offset
        self.timestamp = timestamp
        self.timestamp_type = timestamp_type
        self.key = key
        self.value = value
        self._pairs = tuple(headers)
        self.checksum = checksum
        self.serialized_key_size = serialized_key_size
        self.serialized_value_size = serialized_value_size
        self.serialized_header_size = serialized_header_size

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """Names and values; a new list each time."""
        return list(self._pairs)

    def _astuple(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in FIELDS)

    def _asdict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return dict(zip(FIELDS, self._astuple(), strict=True))

    def _replace(self, **changes: Any) -> ConsumerRecord:
        """Return a record with some fields changed."""
        return ConsumerRecord(**{**self._asdict(), **changes})

    def __len__(self) -> int:
        return len(FIELDS)

    def __getitem__(self, index: int | slice) -> Any:
        return self._astuple()[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._astuple())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ConsumerRecord):
            return self._astuple() == other._astuple()
        if isinstance(other, tuple):
            return self._astuple() == other
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.topic, self.partition, self.offset))

    def __repr__(self) -> str:
        shown = zip(FIELDS, self._astuple(), strict=True)
        return f"ConsumerRecord({', '.join(f'{name}={value!r}' for name, value in shown)})"

    def __reduce__(self) -> tuple[type[ConsumerRecord], tuple[Any, ...]]:
        return ConsumerRecord, self._astuple()
