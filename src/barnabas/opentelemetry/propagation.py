"""The context of a trace in the headers of records: traceparent, tracestate and baggage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opentelemetry import context, propagate, trace
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import Getter, Setter
from opentelemetry.trace import Link, Span

Pairs = list[tuple[str, bytes | None]]

LINKS_MAX = 128
"""As many links as a span has by default."""


class _Setter(Setter[Pairs]):
    def set(self, carrier: Pairs, key: str, value: str) -> None:
        carrier.append((key, value.encode()))


class _Getter(Getter[Iterable[tuple[str, Any]]]):
    def get(self, carrier: Iterable[tuple[str, Any]], key: str) -> list[str] | None:
        for name, value in carrier:
            if name == key and isinstance(value, bytes | bytearray | memoryview):
                return [bytes(value).decode("utf-8", "replace")]
        return None

    def keys(self, carrier: Iterable[tuple[str, Any]]) -> list[str]:
        return [name for name, _ in carrier]


_setter, _getter = _Setter(), _Getter()


def injected(span: Span) -> Pairs:
    """Return the headers for the context of a span."""
    pairs: Pairs = []
    propagate.inject(pairs, trace.set_span_in_context(span), _setter)
    return pairs


def with_context(headers: Any, context_headers: Pairs) -> Any:
    """Return headers with those of a context; what the user has set stays as it is."""
    if not headers:
        return list(context_headers)
    pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    names = {pair[0] for pair in pairs if isinstance(pair, tuple | list) and pair}
    if "traceparent" in names:
        return headers
    return [*pairs, *(pair for pair in context_headers if pair[0] not in names)]


def extracted(headers: Sequence[tuple[str, Any]] | None) -> Context:
    """Return the context in a record's headers; without one, an empty context."""
    return propagate.extract(headers or (), Context(), _getter)


def links_to(many: Iterable[Sequence[tuple[str, Any]] | None]) -> list[Link]:
    """Return links to the contexts in the headers of records, at most LINKS_MAX different ones."""
    found: dict[tuple[int, int], Link] = {}
    for headers in many:
        if headers:
            span = trace.get_current_span(extracted(headers)).get_span_context()
            if span.is_valid:
                found.setdefault((span.trace_id, span.span_id), Link(span))
                if len(found) == LINKS_MAX:
                    break
    return list(found.values())


def current_with(parent: Context) -> Context:
    """Return the current context with the span and baggage of another."""
    merged = context.get_current()
    for key, value in parent.items():
        merged = context.set_value(key, value, merged)
    return merged
