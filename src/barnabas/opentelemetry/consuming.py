"""Spans of a consumer: for each record handed out alone, or for each call that returns many.

A record's span is the child of the one that sent it. With the conventions' names it has a link to
it, as a call's span has to at most 128. What was only fetched in advance is not traced.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry.trace import Link, Span, SpanKind

from barnabas.model.ids import TopicPartition
from barnabas.opentelemetry.conventions import Attributes, error_type, set_failure
from barnabas.opentelemetry.propagation import LINKS_MAX, current_with, extracted, links_to
from barnabas.opentelemetry.settings import ClientIdentity, Settings, await_hook, call_hook


class TracedConsumer:
    """Traces one consumer."""

    def __init__(self, settings: Settings, identity: ClientIdentity) -> None:
        self._settings = settings
        self._identity = identity

    def now(self) -> int:
        """Return when a call began, for `polled` and `polled_columns`."""
        return time.time_ns()

    # records one by one

    def each(self, records: Generator[Any, None, None]) -> Generator[Any, None, None]:
        """Pass on records of an iteration, tracing each when it is handed out."""
        try:
            for record in records:
                if self._settings.active:
                    span = self._receive(record)
                    call_hook(self._settings.consume_hook, span, record, (), {})
                    span.end()
                yield record
        finally:
            records.close()

    async def one(self, record: Any) -> None:
        """Trace a record that is handed out to a coroutine."""
        settings = self._settings
        if settings.active:
            span = self._receive(record)
            call_hook(settings.consume_hook, span, record, (), {})
            await await_hook(settings.async_consume_hook, span, record, (), {})
            span.end()

    def _receive(self, record: Any) -> Span:
        settings, conventions = self._settings, self._settings.conventions
        attributes = {**self._attributes("poll"), **conventions.record(record)}
        parent, links = None, None
        if conventions.new:
            links = links_to((record.headers,))
        else:
            parent = current_with(extracted(record.headers))
        span: Span = settings.tracer.start_span(
            conventions.span_name("poll", (record.topic,)),
            context=parent,
            kind=conventions.kind("poll"),
            attributes=attributes,
            links=links,
        )
        if settings.measures is not None:
            settings.measures.consumed(1, attributes)
        return span

    # many records

    def polled(self, found: Mapping[TopicPartition, Sequence[Any]], began: int) -> None:
        """Trace the records of one call."""
        span = self._polled(found, began)
        if span is not None:
            if self._settings.consume_hook is not None:
                for record in _each(found):
                    call_hook(self._settings.consume_hook, span, record, (), {})
            span.end()

    async def polled_async(self, found: Mapping[TopicPartition, Sequence[Any]], began: int) -> None:
        """Trace the records of one call of a coroutine."""
        span = self._polled(found, began)
        if span is not None:
            settings = self._settings
            if settings.consume_hook is not None or settings.async_consume_hook is not None:
                for record in _each(found):
                    call_hook(settings.consume_hook, span, record, (), {})
                    await await_hook(settings.async_consume_hook, span, record, (), {})
            span.end()

    def polled_columns(self, batch: Any, began: int) -> None:
        """Trace an Arrow record batch."""
        if not self._settings.active or not batch.num_rows:
            return
        topics = batch.column("topic").unique().to_pylist()
        headers = batch.column("headers").slice(0, LINKS_MAX).to_pylist()
        pairs = [[(each["key"], each["value"]) for each in row] for row in headers]
        self._many(topics, batch.num_rows, links_to(pairs), began).end()

    def _polled(self, found: Mapping[TopicPartition, Sequence[Any]], began: int) -> Span | None:
        if not found or not self._settings.active:
            return None
        count = sum(map(len, found.values()))
        links = links_to(record.headers for record in _each(found))
        return self._many([each.topic for each in found], count, links, began)

    def _many(self, topics: Sequence[str], count: int, links: list[Link], began: int) -> Span:
        settings = self._settings
        attributes = self._attributes("poll")
        attributes["messaging.batch.message_count"] = count
        if len(set(topics)) == 1:
            attributes["messaging.destination.name"] = topics[0]
        span: Span = settings.tracer.start_span(
            settings.conventions.span_name("poll", topics),
            kind=settings.conventions.kind("poll"),
            attributes=attributes,
            links=links,
            start_time=began,
        )
        if settings.measures is not None:
            settings.measures.consumed(count, attributes)
            settings.measures.lasted((time.time_ns() - began) / 1e9, attributes)
        return span

    # commits

    @contextmanager
    def commit(self, topics: Iterable[str]) -> Iterator[None]:
        """Trace a commit while the context lasts; only the conventions have a name for it."""
        settings = self._settings
        if not settings.active or not settings.conventions.new:
            yield
            return
        names = sorted(set(topics))
        attributes = self._attributes("commit")
        if len(names) == 1:
            attributes["messaging.destination.name"] = names[0]
        began_ns = time.perf_counter_ns()
        span = settings.tracer.start_span(
            settings.conventions.span_name("commit", names),
            kind=SpanKind.CLIENT,
            attributes=attributes,
        )
        try:
            yield
        except BaseException as failure:
            attributes["error.type"] = error_type(failure)
            set_failure(span, failure)
            raise
        finally:
            span.end()
            if settings.measures is not None:
                settings.measures.lasted((time.perf_counter_ns() - began_ns) / 1e9, attributes)

    def _attributes(self, operation: str) -> Attributes:
        conventions = self._settings.conventions
        return {**self._identity.attributes(conventions), **conventions.operation(operation)}


def _each(found: Mapping[TopicPartition, Sequence[Any]]) -> Iterator[Any]:
    for records in found.values():
        yield from records
