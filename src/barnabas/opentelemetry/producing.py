"""Spans of a producer: one per record that is sent, or one per call that sends many.

A span begins when the program calls, and ends when the outcome is known: with the offset, or with
the error. Its context is in the headers of its records.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from opentelemetry.trace import Span, SpanKind

from barnabas.opentelemetry.conventions import Attributes, error_type, message, set_failure
from barnabas.opentelemetry.propagation import injected, with_context
from barnabas.opentelemetry.settings import ClientIdentity, Settings, await_hook, call_hook


class Sending:
    """The trace of a record, or of the records of one call."""

    __slots__ = ("_attributes", "_began_ns", "_count", "_ended", "_settings", "span")

    def __init__(self, settings: Settings, span: Span, attributes: Attributes, count: int) -> None:
        self._settings = settings
        self.span = span
        self._attributes = attributes
        self._count = count
        self._began_ns = time.perf_counter_ns()
        self._ended = False

    def written(self, metadata: Any) -> None:
        """End it: the record was written here."""
        span, conventions = self.span, self._settings.conventions
        self._attributes["messaging.destination.partition.id"] = str(metadata.partition)
        if span.is_recording():
            span.set_attribute("messaging.destination.partition.id", str(metadata.partition))
            if metadata.offset >= 0:
                span.set_attributes(conventions.offset(metadata.offset))
        self._end()

    def failed(self, failure: BaseException) -> None:
        """End it: the records were not written, or not all."""
        self._attributes["error.type"] = error_type(failure)
        set_failure(self.span, failure)
        self._end()

    def all_written(self) -> None:
        """End it: all records of the call were written."""
        self._end()

    def _end(self) -> None:
        if self._ended:
            return
        self._ended = True
        self.span.end()
        if self._settings.measures is not None:
            seconds = (time.perf_counter_ns() - self._began_ns) / 1e9
            self._settings.measures.sent(self._count, seconds, self._attributes)


class TracedProducer:
    """Traces one producer."""

    def __init__(self, settings: Settings, identity: ClientIdentity) -> None:
        self._settings = settings
        self._identity = identity

    def send(self, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], Sending | None]:
        """Begin with one record: return the arguments of `send` with headers for its context."""
        if not self._settings.active:
            return arguments, None
        arguments, sending = self._begin(arguments)
        call_hook(self._settings.produce_hook, sending.span, *_shown(arguments))
        return arguments, sending

    async def send_async(
        self, arguments: tuple[Any, ...]
    ) -> tuple[tuple[Any, ...], Sending | None]:
        """Do what `send` does, and await the hook for it."""
        arguments, sending = self.send(arguments)
        if sending is not None:
            hook = self._settings.async_produce_hook
            await await_hook(hook, sending.span, *_shown(arguments))
        return arguments, sending

    def send_rows(
        self, topic: str, rows: Sequence[tuple[Any, ...]]
    ) -> tuple[Sequence[tuple[Any, ...]], Sending | None]:
        """Begin with many records: return them with headers for the context of all."""
        if not self._settings.active or not rows:
            return rows, None
        sending = self._begin_many(topic, len(rows), SpanKind.PRODUCER)
        pairs = injected(sending.span)
        return [
            (key, value, with_context(headers, pairs), *rest) for key, value, headers, *rest in rows
        ], sending

    def send_packed(self, topic: str, count: int) -> Sending | None:
        """Begin with records that cannot get headers: columns, or a batch that is complete."""
        if not self._settings.active or not count:
            return None
        return self._begin_many(topic, count, SpanKind.CLIENT)

    def _begin(self, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], Sending]:
        topic, value, key, headers, partition, timestamp_ms = arguments
        attributes = self._attributes(topic)
        attributes |= message(key, value)
        if partition is not None:
            attributes["messaging.destination.partition.id"] = str(partition)
        span = self._start(topic, SpanKind.PRODUCER, attributes)
        headers = with_context(headers, injected(span))
        sending = Sending(self._settings, span, attributes, 1)
        return (topic, value, key, headers, partition, timestamp_ms), sending

    def _begin_many(self, topic: str, count: int, kind: SpanKind) -> Sending:
        attributes = self._attributes(topic)
        attributes["messaging.batch.message_count"] = count
        span = self._start(topic, kind, attributes)
        return Sending(self._settings, span, attributes, count)

    def _attributes(self, topic: str) -> Attributes:
        conventions = self._settings.conventions
        return {
            **self._identity.attributes(conventions),
            **conventions.operation("send"),
            "messaging.destination.name": topic,
        }

    def _start(self, topic: str, kind: SpanKind, attributes: Attributes) -> Span:
        name = self._settings.conventions.span_name("send", (topic,))
        span: Span = self._settings.tracer.start_span(name, kind=kind, attributes=attributes)
        return span


def _shown(arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of `send` as hooks get them: the topic, and keywords."""
    topic, value, key, headers, partition, timestamp_ms = arguments
    return (topic,), {
        "value": value,
        "key": key,
        "headers": headers,
        "partition": partition,
        "timestamp_ms": timestamp_ms,
    }
