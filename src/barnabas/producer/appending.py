"""Appending records that were rejected at first: what to wait for, how long, and what to raise.

The rules are generators that yield what a record needs. Producers drive them and wait in their own
way: in the caller's thread, or on the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from barnabas.client.errors import KafkaTimeoutError, ProducerClosed
from barnabas.config.clients.producer import ProducerOptions
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.model.request_errors import MessageSizeTooLargeError
from barnabas.producer.accumulator import Refusal, Segment
from barnabas.producer.core import ProducerCore
from barnabas.producer.many import Append
from barnabas.producer.memory_queue import MemoryTurn
from barnabas.producer.preparation import Arguments
from barnabas.producer.topics import check_topic

_BYTES = (bytes, bytearray, memoryview)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PartitionsOf:
    """The partitions of a topic must be known."""

    topic: str
    timeout_ms: float


@dataclass(frozen=True, slots=True)
class Room:
    """Memory is needed; the generator is sent whether the turn got some in time."""

    turn: MemoryTurn
    timeout_s: float


Steps: TypeAlias = Generator[PartitionsOf | Room, bool, T]


class Appending:
    """How one producer retries what the accumulator has rejected."""

    def __init__(
        self,
        core: ProducerCore,
        now_s: Callable[[], float],
        check: Callable[[], object] = lambda: None,
    ) -> None:
        """`check` raises where a wait could never end."""
        self._core = core
        self._now_s = now_s
        self._check = check

    def one(
        self,
        append: Callable[[bool], T | Refusal],
        refusal: Refusal,
        arguments: Arguments,
        ring: Callable[[], object],
        size: int,
        failed: Callable[[RequestError], T] | None = None,
    ) -> Steps[T]:
        """Append a record or a batch of about `size` bytes that was rejected.

        `failed` turns an error that brokers return for the topic into a result; without it, it is
        raised.
        """
        deadline_s = self._deadline_s()
        with MemoryTurn(self._core.memory_queue, ring, size) as turn:
            while True:
                try:
                    yield from self._make_way(refusal, arguments, turn, deadline_s)
                except RequestError as failure:
                    if failed is None or refusal is not Refusal.TOPIC:
                        raise
                    return failed(failure)
                taken = append(turn.held)
                if not isinstance(taken, Refusal):
                    return taken
                refusal = taken

    def rows(
        self, topic: str, append: Append, segments: list[Segment], ring: Callable[[], object]
    ) -> Steps[None]:
        """Append rows; their positions are added to `segments`."""
        row = 0
        deadline_s: float | None = None
        arguments: Arguments = (topic, None, None, None, None, None)
        with MemoryTurn(self._core.memory_queue, ring) as turn:
            while True:
                taken, refusal = append(row, segments, turn.held)
                if refusal is None:
                    return
                moved = taken > row
                if moved or deadline_s is None:  # a call that makes progress starts its time again
                    deadline_s = self._deadline_s()
                row = taken
                if moved and turn.held:
                    turn.leave()
                    continue
                try:
                    yield from self._make_way(refusal, arguments, turn, deadline_s)
                except Exception as failure:
                    failure.add_note(f"row {row}; the rows before it are queued")
                    raise

    def _make_way(
        self, refusal: Refusal, arguments: Arguments, turn: MemoryTurn, deadline_s: float
    ) -> Steps[None]:
        """Wait for what a record needs, or raise why it cannot be appended."""
        self._check()
        left_s = max(deadline_s - self._now_s(), 0.0)
        if refusal is Refusal.MEMORY:
            if not (yield Room(turn, left_s)):
                raise _memory_error(self._core.options, arguments[0])
            return
        turn.leave()
        if refusal is not Refusal.TOPIC:
            raise _refusal_error(self._core, refusal, arguments)
        yield PartitionsOf(arguments[0], left_s * 1000)

    def _deadline_s(self) -> float:
        return self._now_s() + self._core.options.max_block_ms / 1000


def _refusal_error(core: ProducerCore, refusal: Refusal, arguments: Arguments) -> Exception:
    """Return the exception for a record that no wait would help."""
    topic, value, key, headers, partition, timestamp_ms = arguments
    if refusal is Refusal.TYPE:
        return _type_error(topic, value, key, headers, partition, timestamp_ms)
    if refusal is Refusal.EMPTY:
        return InvalidValueError(f"a record for {topic!r} needs at least one of key and value")
    if refusal is Refusal.PARTITION:
        count = core.accumulator.partition_count(topic)
        return InvalidValueError(
            f"partition {partition} of {topic!r}: must be 0 to {count - 1}, it has {count}"
        )
    if refusal is Refusal.SIZE:
        return _size_error(core.options, topic, value, key)
    assert refusal is Refusal.CLOSED, refusal
    if core.closing or core.transaction_manager is None:
        return ProducerClosed("the producer is closed and accepts no records")
    transaction = core.transaction_manager.transaction
    return transaction.error or transaction.illegal("send a record")


def _memory_error(options: ProducerOptions, topic: str) -> KafkaTimeoutError:
    """Return the exception for a record that found no memory in time."""
    return KafkaTimeoutError(
        f"no memory for a record of {topic!r} after max.block.ms={options.max_block_ms:.0f}: "
        f"buffer.memory={options.buffer_memory} is full of records that brokers have not "
        "acknowledged yet"
    )


def _type_error(
    topic: Any, value: Any, key: Any, headers: Any, partition: Any, timestamp_ms: Any
) -> Exception:
    try:
        check_topic(topic)
    except (TypeError, InvalidValueError) as failure:
        return failure
    for name, field in (("value", value), ("key", key)):
        if field is not None and not isinstance(field, _BYTES):
            return TypeError(
                f"{name} is of type {type(field).__name__}: must be bytes, bytearray, memoryview "
                f"or None, or set {name}_serializer"
            )
    for name, number in (("partition", partition), ("timestamp_ms", timestamp_ms)):
        if number is not None and not isinstance(number, int):
            return TypeError(f"{name} {number!r}: must be a whole number")
    return TypeError(f"headers {headers!r}: must be a list of (str, bytes) tuples")


def _size_error(options: ProducerOptions, topic: str, value: Any, key: Any) -> Exception:
    size = sum(memoryview(field).nbytes for field in (key, value) if field is not None)
    bound = (
        f"buffer.memory={options.buffer_memory}"
        if options.buffer_memory < options.max_request_size
        else f"max.request.size={options.max_request_size}"
    )
    return MessageSizeTooLargeError(
        f"a record for {topic!r} with {size} bytes of key and value exceeds {bound}"
    )
