"""Names of spans and attributes: those that dashboards know today, or those of the conventions.

Unless OTEL_SEMCONV_STABILITY_OPT_IN says `messaging` (the conventions' names) or `messaging/dup`
(both), names are those of OpenTelemetry's instrumentation of aiokafka, which programs come from.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from opentelemetry.trace import Span, SpanKind, Status, StatusCode

Attributes = dict[str, str | int | bool]
TOPICS_MAX = 10
"""Topics in the name of one span."""


class Conventions(NamedTuple):
    """Which names are used."""

    old: bool
    new: bool

    @classmethod
    def chosen(cls, opt_in: str) -> Conventions:
        """Return what the value of OTEL_SEMCONV_STABILITY_OPT_IN asks for."""
        wanted = {each.strip() for each in opt_in.lower().split(",")}
        if "messaging/dup" in wanted:
            return cls(True, True)
        new = "messaging" in wanted
        return cls(not new, new)

    def span_name(self, operation: str, topics: Iterable[str]) -> str:
        """Return `poll orders`, or `orders receive`."""
        names = sorted(set(topics))
        if self.new:
            return f"{operation} {names[0]}" if len(names) == 1 else operation
        shown = ", ".join(names[:TOPICS_MAX]) + (", …" if len(names) > TOPICS_MAX else "")
        return f"{shown} {'receive' if operation == 'poll' else operation}".strip()

    def operation(self, name: str) -> Attributes:
        """Return the attributes of an operation: send, poll, process or commit."""
        kind = {"send": "send", "poll": "receive", "process": "process", "commit": "settle"}[name]
        if self.new:
            return {"messaging.operation.name": name, "messaging.operation.type": kind}
        return {
            "messaging.operation.name": "receive" if name == "poll" else name,
            "messaging.operation.type": "publish" if name == "send" else kind,
        }

    def kind(self, operation: str) -> SpanKind:
        """Return the kind of the span of an operation on one record."""
        if operation == "send":
            return SpanKind.PRODUCER
        if operation == "process" or not self.new:
            return SpanKind.CONSUMER
        return SpanKind.CLIENT

    def offset(self, offset: int) -> Attributes:
        """Return the attributes of a record's offset."""
        found: Attributes = {}
        if self.old:
            found["messaging.kafka.message.offset"] = offset
        if self.new:
            found["messaging.kafka.offset"] = offset
        return found

    def record(self, record: Any) -> Attributes:
        """Return the attributes of a record that was read."""
        found: Attributes = {
            "messaging.destination.name": record.topic,
            "messaging.destination.partition.id": str(record.partition),
            **self.offset(record.offset),
            **message(record.key, record.value),
        }
        if self.old:
            found["messaging.message.id"] = f"{record.topic}.{record.partition}.{record.offset}"
        return found


def message(key: Any, value: Any) -> Attributes:
    """Return the attributes of a record's key, and of a value that is missing."""
    found: Attributes = {}
    if key is not None:
        found["messaging.kafka.message.key"] = key_text(key)
    if value is None:
        found["messaging.kafka.message.tombstone"] = True
    return found


def key_text(key: Any) -> str:
    """Return a key as a string."""
    if isinstance(key, bytes | bytearray | memoryview):
        try:
            return bytes(key).decode()
        except UnicodeDecodeError:
            return str(bytes(key))
    return str(key)


def error_type(failure: BaseException) -> str:
    """Return Kafka's name of an error, or the exception's."""
    name = getattr(getattr(failure, "code", None), "name", None)
    return name if isinstance(name, str) else type(failure).__name__


def set_failure(span: Span, failure: BaseException) -> None:
    """Mark a span as failed."""
    if span.is_recording():
        span.set_attribute("error.type", error_type(failure))
        span.record_exception(failure)
        span.set_status(Status(StatusCode.ERROR, str(failure)))
