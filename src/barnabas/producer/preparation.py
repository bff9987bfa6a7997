"""What happens to a record before it is encoded: interceptors, serializers, the user's partitioner.

If a producer has none of them, records go straight to the accumulator.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from barnabas.client.metadata import ClientMetadata
from barnabas.client.tracing import ProducerTracer, SendTrace
from barnabas.config.clients.producer import ProducerOptions
from barnabas.model.errors import InvalidValueError
from barnabas.producer.accumulator import RecordFuture, Segment
from barnabas.producer.many import ManyFuture
from barnabas.producer.partitioner import partitioner_of
from barnabas.structs import RecordMetadata

log = logging.getLogger(__name__)

Arguments = tuple[str, Any, Any, Any, int | None, int | None]
"""Topic, value, key, headers, partition and timestamp: the arguments of `send`."""


_FRAME_BYTES_MAX = 100
"""Maximum overhead of a batch of one record: its header, and some numbers."""


def plain_size(arguments: Arguments) -> int:
    """Return the size of a batch with this record; 0 with headers, or if not all bytes."""
    _, value, key, headers, _, _ = arguments
    if headers or not all(isinstance(each, bytes | bytearray | None) for each in (value, key)):
        return 0
    return _FRAME_BYTES_MAX + len(value or b"") + len(key or b"")


@dataclass(frozen=True)
class ProducerRecord:
    """A record as interceptors see it, before it is serialized."""

    topic: str
    value: Any = None
    key: Any = None
    headers: Any = None
    partition: int | None = None
    timestamp_ms: int | None = None

    def replace(self, **changes: Any) -> ProducerRecord:
        """Return a changed copy."""
        return replace(self, **changes)


class Preparation:
    """The interceptors, serializers and partitioner of one producer."""

    def __init__(
        self,
        options: ProducerOptions,
        view: ClientMetadata,
        tracer: ProducerTracer | None = None,
    ) -> None:
        self._serialize_key = serializer_of(options.key_serializer)
        self._serialize_value = serializer_of(options.value_serializer)
        self._ask = partitioner_of(options.partitioner, view)
        self._interceptors = _interceptors(options.interceptors)
        self.tracer = tracer
        """What traces records; None for most producers."""

    @property
    def asks_partitioner(self) -> bool:
        """Return whether partitions must be known before a record is prepared."""
        return self._ask is not None

    @property
    def trivial(self) -> bool:
        """Return whether records are not changed."""
        return (
            self._serialize_key is None
            and self._serialize_value is None
            and self._ask is None
            and not self._interceptors
            and self.tracer is None
        )

    def begin(self, arguments: Arguments) -> tuple[Arguments, SendTrace | None]:
        """Let interceptors and the tracer change a record; return its trace, too."""
        arguments = self.intercept(arguments)
        if self.tracer is None:
            return arguments, None
        traced: tuple[Any, SendTrace | None] = self.tracer.send(arguments)
        return traced

    async def begin_async(self, arguments: Arguments) -> tuple[Arguments, SendTrace | None]:
        """Do what `begin` does, for a coroutine."""
        arguments = self.intercept(arguments)
        if self.tracer is None:
            return arguments, None
        traced: tuple[Any, SendTrace | None] = await self.tracer.send_async(arguments)
        return traced

    def intercept(self, arguments: Arguments) -> Arguments:
        """Let interceptors change a record; one that fails is logged and skipped."""
        if not self._interceptors:
            return arguments
        record = ProducerRecord(*arguments)
        for interceptor in self._interceptors:
            try:
                changed = interceptor.on_send(record)
            except Exception:  # a failing interceptor must not stop records
                log.exception("interceptor %r is skipped: failed in on_send", interceptor)
            else:
                record = record if changed is None else changed
        return (
            record.topic,
            record.value,
            record.key,
            record.headers,
            record.partition,
            record.timestamp_ms,
        )

    def serialize(self, arguments: Arguments) -> Arguments:
        """Turn key and value to bytes and choose a partition."""
        topic, value, key, headers, partition, timestamp_ms = arguments
        packed_key, packed_value = key, value
        if self._serialize_key is not None:
            packed_key = self._serialize_key(topic, headers, key)
        if self._serialize_value is not None:
            packed_value = self._serialize_value(topic, headers, value)
        if self._ask is not None and partition is None:
            partition = self._ask(topic, key, packed_key, value, packed_value)
        return topic, packed_value, packed_key, headers, partition, timestamp_ms

    def rows(
        self, topic: str, rows: Sequence[Any], partition: int | None
    ) -> tuple[Sequence[Any], SendTrace | None]:
        """Prepare the rows of `send_many`; return their trace, too."""
        prepared = [self.row(topic, row, partition) for row in rows]
        return (prepared, None) if self.tracer is None else self.tracer.send_rows(topic, prepared)

    def packed(self, topic: str, count: int) -> SendTrace | None:
        """Return the trace of records whose headers cannot be changed."""
        return None if self.tracer is None else self.tracer.send_packed(topic, count)

    def row(self, topic: str, row: Any, partition: int | None) -> tuple[Any, ...]:
        """Prepare a row of `send_many`; a partitioner needs the partitions to be known."""
        key, value, headers, time_ms, target = None, row, None, None, None
        if isinstance(row, tuple | list):
            key, value, headers, time_ms, target = (*row, None, None, None)[:5]
        target = partition if target is None else target
        arguments = self.intercept((topic, value, key, headers, target, time_ms))
        if arguments[0] != topic:
            raise InvalidValueError(
                f"an interceptor changed the topic of a row from {topic!r} to {arguments[0]!r}: "
                "all rows of one call must go to one topic; use send() instead"
            )
        _, value, key, headers, target, time_ms = self.serialize(arguments)
        return key, value, headers, time_ms, target

    def follow(self, future: RecordFuture, trace: SendTrace | None = None) -> None:
        """Notify interceptors and the trace of a record's outcome, before any other callback."""
        if trace is not None:
            future.add_callback(trace.written)
            future.add_errback(trace.failed)
        if self._interceptors:
            future.add_callback(self._acknowledged)
            future.add_errback(self._failed)

    def follow_many(self, segments: Iterable[Segment]) -> None:
        """Notify interceptors of the outcome of each record that came with others."""
        if self._interceptors:
            for segment in segments:
                for index in range(segment.first, segment.first + segment.count):
                    self.follow(segment.batch.future(index))

    def refused(self, failure: BaseException, trace: SendTrace | None = None) -> None:
        """Notify interceptors and the trace of a record that could not be queued."""
        if trace is not None:
            trace.failed(failure)
        if self._interceptors:
            self._failed(failure)

    def close(self) -> None:
        """Close interceptors."""
        for interceptor in self._interceptors:
            close = getattr(interceptor, "close", None)
            if close is not None:
                try:
                    close()
                except Exception:  # the others must be closed, too
                    log.exception("interceptor %r: failed in close", interceptor)

    def _acknowledged(self, metadata: RecordMetadata) -> None:
        self._tell(metadata, None)

    def _failed(self, failure: BaseException) -> None:
        self._tell(None, failure)

    def _tell(self, metadata: RecordMetadata | None, failure: BaseException | None) -> None:
        for interceptor in self._interceptors:
            acknowledged = getattr(interceptor, "on_acknowledgement", None)
            if acknowledged is not None:
                try:
                    acknowledged(metadata, failure)
                except Exception:  # a failing interceptor must not stop callbacks
                    log.exception(
                        "interceptor %r is skipped: failed in on_acknowledgement", interceptor
                    )


def follow_call(outcome: ManyFuture, trace: SendTrace | None) -> None:
    """End the trace of a call when the outcome of all its records is known."""
    if trace is None:
        return

    def look() -> None:
        if outcome.is_done:
            failure = outcome.exception
            if failure is None:
                trace.all_written()
            else:
                trace.failed(failure)

    batches = outcome.batches()
    for batch in batches:
        batch.watch(look)
    if not batches:
        trace.all_written()


def serializer_of(given: Any) -> Callable[[str, Any, Any], Any] | None:
    """Return how to call f(data), or an object with serialize(topic, headers, data)."""
    if given is None:
        return None
    method = getattr(given, "serialize", None)
    if callable(method):
        serialize: Callable[[str, Any, Any], Any] = method
        return serialize
    function: Callable[[Any], Any] = given
    return lambda topic, headers, data: function(data)


def _interceptors(given: Iterable[Any]) -> list[Any]:
    return [each() if isinstance(each, type) else each for each in given or ()]
